// Builds the dashboard into the sidecar's package; `--check` fails if the committed build is not what the source says.
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "sidecar", "adapters", "http", "static");
const check = process.argv.includes("--check");

const made = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx", style: "src/style.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "none",
  outdir: target,
  write: false,
});
const files = made.outputFiles.map((file) => [file.path, Buffer.from(file.contents)]);
for (const name of ["index.html", "icon.svg"]) {
  files.push([join(target, name), await readFile(join(here, "src", name))]);
}
let stale = false;
for (const [path, content] of files) {
  if (!check) {
    await writeFile(path, content);
    continue;
  }
  const committed = await readFile(path).catch(() => Buffer.alloc(0));
  if (!committed.equals(content)) {
    stale = true;
    console.error(`${path}: not what the source says; run 'make generate'`);
  }
}
process.exit(stale ? 1 : 0);
