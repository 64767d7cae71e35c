// The process in which a TypeScript tool runs, in Deno without rights but those of its grant; see python_tool.py for what
// it reads and writes. The code is imported from a data: URL: what a module imports in its turn is then held to the same
// rights, which files named in a main module are not.
const DEEPEST = 100; // levels of a result
const LARGEST = 16 << 20; // bytes of a result as JSON
// What a sandbox says where it holds something back; the last one where there is no network but the own loopback.
const REFUSED = ["NotCapable", "PermissionDenied", "ConnectionRefused"];
// The tool may replace what is global.
const { stringify, parse } = JSON;
const stdout = Deno.stdout;
const write = stdout.writeSync.bind(stdout);
const exit = Deno.exit;
const encode = TextEncoder.prototype.encode.bind(new TextEncoder());

type Task = { nonce: string; name: string; code: string; parameters: unknown };

class NoJson extends Error {}

function say(text: string): void {
  const bytes = encode(text);
  for (let done = 0; done < bytes.length;) done += write(bytes.subarray(done));
}

function url(code: string): string {
  const bytes = encode(code);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return `data:application/typescript;base64,${btoa(text)}`;
}

function plain(value: unknown, path: string, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (value === undefined) return depth === 0 ? null : undefined;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    return { $number: Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity" };
  }
  if (typeof value === "object") {
    if (depth === DEEPEST) {
      throw new NoJson(`The result is nested deeper than ${DEEPEST} levels, or holds itself: ${path.slice(0, 200)}.`);
    }
    const own = (value as { toJSON?: unknown }).toJSON;
    if (typeof own === "function") return plain(own.call(value), path, depth + 1);
    if (Array.isArray(value)) return value.map((each, at) => plain(each, `${path}[${at}]`, depth + 1));
    if (Object.prototype.toString.call(value) === "[object Object]") {
      const named = Object.entries(value).map(([key, each]) => {
        return [key, plain(each, `${path}[${stringify(key.slice(0, 40))}]`, depth + 1)];
      });
      return Object.fromEntries(named.filter(([, each]) => each !== undefined));
    }
  }
  const kind = typeof value === "object" ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;
  throw new NoJson(
    `${path.slice(0, 200)} is of type ${kind}, which JSON does not have. Return objects, arrays, text, numbers, true, ` +
      "false or null.",
  );
}

// Say which lines of the tool an error came through, and nothing of this program.
function trace(stack: string, name: string): string {
  const lines = stack
    .replace(/data:application\/typescript;base64,[A-Za-z0-9+/=.]*/g, `<tool ${name}>`)
    .split("\n");
  return lines.filter((line) => !line.includes("file:///")).join("\n").slice(0, 20_000);
}

function told(error: unknown, task: Task): object {
  if (error instanceof NoJson) return { error: error.message };
  if (!(error instanceof Error)) return { error: `The tool threw ${String(error).slice(0, 2_000)}` };
  const message = trace(error.message, task.name).replace(/, run again with the --allow-\w+ flag/, "").slice(0, 2_000);
  return {
    error: /export 'execute' is not defined/i.test(message)
      ? "TypeError: the code defines no function execute(params)"
      : message.startsWith("SyntaxError: ")
      ? message
      : `${error.name}: ${message}`,
    refused: REFUSED.includes(error.name) || message.startsWith("Requires "),
    memory: error instanceof RangeError && /allocation failed/i.test(message),
    traceback: trace(String(error.stack ?? ""), task.name),
  };
}

async function outcome(task: Task): Promise<string> {
  try {
    const module = await import(url(`${task.code}\nexport { execute as execute_of_tool };\n`));
    if (typeof module.execute_of_tool !== "function") throw new TypeError("the code defines no function execute(params)");
    const value = stringify(plain(await module.execute_of_tool(task.parameters), "result", 0));
    if (value.length <= LARGEST) return `{"value": ${value}}`;
    return stringify({ error: `The result is larger than ${LARGEST >> 20} MiB as JSON. Return less, or write a file.` });
  } catch (error) {
    return stringify(told(error, task));
  }
}

const task: Task = parse(await new Response(Deno.stdin.readable).text());
say(`${task.nonce}\n`);
const answer = await outcome(task);
say(`\n${task.nonce}\n${answer}\n`);
exit(0);
