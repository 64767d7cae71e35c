// Writes src/protocol.ts, the types of every message, from the schema that the Python package gives.
//
//   python -m reyn_jupyter.notebook.serving.protocol_schema | node types.mjs [--check]
import { readFileSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { compile } from "json-schema-to-typescript";

const file = new URL("src/protocol.ts", import.meta.url);
const schema = JSON.parse(await text(process.stdin));
// The compiler knows tuples by the older word.
const older = (value) =>
  Array.isArray(value)
    ? value.map(older)
    : value && typeof value === "object"
      ? Object.fromEntries(
          Object.entries(value).map(([key, each]) => [key === "prefixItems" ? "items" : key, older(each)]),
        )
      : value;
const compiled = await compile(older(schema), "Protocol", {
  additionalProperties: false,
  bannerComment: "// Made from the Python types by `make protocol`; change those.",
  unreachableDefinitions: true,
});
const made = compiled
  .replace(/ \*\n \* This interface was referenced by .*?\n \* via the .*?\n/gs, "")
  .replace(/\/\*\*\n \* This interface was referenced by .*?\*\/\n/gs, "");
if (!process.argv.includes("--check")) writeFileSync(file, made);
else if (readFileSync(file, "utf8") !== made) {
  console.error("src/protocol.ts is not what the Python types give now: run make protocol");
  process.exit(1);
}
