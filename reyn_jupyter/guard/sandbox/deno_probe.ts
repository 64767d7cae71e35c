// Tries to get out of Deno's permissions, as probe.py does of the other sandboxes.
const canary = Deno.args[0];
const attempts: [string, () => unknown][] = [
  ["reads outside", () => Deno.readTextFileSync(canary)],
  ["writes outside", () => Deno.writeTextFileSync(`${canary}.new`, "out")],
  ["starts programs", () => new Deno.Command("true").outputSync()],
  ["reads the environment", () => Deno.env.toObject()],
  ["listens", () => Deno.listen({ port: 0 })],
];
const out = attempts.filter(([, attempt]) => {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
});
console.log(out.map(([name]) => name).join(", ") || "isolated");
