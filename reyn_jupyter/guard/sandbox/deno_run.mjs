// Runs a script as a module that another one imports: what it names in its turn is then held to its rights. Deno reads the
// modules that a main module names without asking, wherever they lie.
const [script, ...words] = Deno.args;
Object.defineProperty(Deno, "args", { value: Object.freeze(words) });
await import(script);
