// Builds what the Python package carries: one ES module a live kind and one style sheet in reyn_jupyter/static, and the
// JupyterLab extension in reyn_jupyter/labextension. Every output names the hash of the sources it was made from, so
// that a stale bundle is found without building again.
//
//   node build.mjs                       everything
//   node build.mjs widgets [KIND [OUT]]  only the widgets (or one), to reyn_jupyter/static (or elsewhere, to try it)
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const target = join(root, "reyn_jupyter");
const SHARED_STYLES = ["view.css", "chart.css"].map((name) => join(target, "notebook", "render", name));
const SOURCES = [
  "src",
  "style",
  "schema",
  "package.json",
  "tsconfig.json",
  "yarn.lock",
  "rspack.config.cjs",
  "build.mjs",
].map((name) => join(here, name));
const WIDGETS = ["widget", "explorer", "blob", "grid", "trace", "page"];

function files(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => files(join(path, name)));
}

export function sourceHash() {
  const hash = createHash("sha256");
  const named = [...SOURCES, ...SHARED_STYLES]
    .flatMap(files)
    .map((path) => [relative(root, path).split("\\").join("/"), path]);
  for (const [name, path] of named.sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(name).update("\0").update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex");
}

async function widgets(hash, kinds, out) {
  if (kinds === WIDGETS) rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const banner = `/* reyn-jupyter, sources ${hash} */`;
  await build({
    entryPoints: kinds.flatMap((kind) => [
      join(here, "src", "widgets", `${kind}.ts`),
      join(here, "style", "widgets", `${kind}.css`),
    ]),
    outdir: out,
    entryNames: "[name]",
    bundle: true,
    minify: true,
    format: "esm",
    // Native nesting of styles stays: every browser that these hosts run in has it, and it halves the size.
    target: ["es2022", "chrome120", "firefox121", "safari17.2"],
    charset: "utf8",
    define: { SOURCES: JSON.stringify(hash) },
    legalComments: "none",
    banner: { js: banner, css: banner },
  });
}

function extension(hash) {
  const run = (command, args) =>
    execFileSync(command, args, { cwd: here, stdio: ["ignore", "inherit", "inherit"] });
  rmSync(join(here, "lib"), { recursive: true, force: true });
  run(process.execPath, [join(here, "node_modules", "typescript", "bin", "tsc")]);
  run("jupyter-builder", ["build", "."]);
  writeFileSync(join(target, "labextension", "sources.sha256"), `${hash}\n`);
}

const hash = sourceHash();
const [, , part, kind, out] = process.argv;
await widgets(hash, kind ? [kind] : WIDGETS, out ?? join(target, "static"));
if (part !== "widgets") extension(hash);
console.log(`built from sources ${hash.slice(0, 12)}`);
