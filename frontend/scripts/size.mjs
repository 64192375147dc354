/**
 * How much gzipped JavaScript a page loads before it is drawn, and what is loaded later. Fails above the budgets.
 * Reads the manifest of the last `npm run build`.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

/** kB of gzipped JavaScript. There is no budget for all files together. */
const FIRST_VISIT = 350;
const LAZY_CHUNK = 250;

const built = fileURLToPath(new URL("../../backend/coloop_server/_static/", import.meta.url));
const manifest = JSON.parse(readFileSync(`${built}.vite/manifest.json`, "utf-8"));

const sizeOf = (file) => gzipSync(readFileSync(built + file), { level: 9 }).length / 1000;

/** Chunks that a chunk imports statically, itself included. */
function closure(name, seen = new Set()) {
  if (!manifest[name]) throw new Error(`the build has no chunk ${name}`);
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const other of manifest[name].imports ?? []) closure(other, seen);
  return seen;
}

function kilobytes(names) {
  const files = new Set([...names].map((name) => manifest[name].file));
  return [...files]
    .filter((file) => file.endsWith(".js"))
    .reduce((sum, file) => sum + sizeOf(file), 0);
}

let isOver = false;
function report(label, size, budget = Number.POSITIVE_INFINITY) {
  isOver ||= size > budget;
  const limit = Number.isFinite(budget) ? `  (budget ${budget} kB)` : "";
  console.log(
    `${label.padEnd(36)}${size.toFixed(1).padStart(8)} kB${limit}${size > budget ? "  OVER BUDGET" : ""}`,
  );
}

const names = Object.keys(manifest);
const entry = names.find((name) => manifest[name].isEntry);
const first = new Set([...closure(entry), ...closure("src/app/EditorPage.tsx")]);
report("first visit (a loop)", kilobytes(first), FIRST_VISIT);
report("a run", kilobytes(new Set([...closure(entry), ...closure("src/app/RunPage.tsx")])));
report("all files", kilobytes(names));
const later = names
  .filter((name) => manifest[name].file.endsWith(".js") && !first.has(name))
  .map((name) => [name, kilobytes([name])])
  .toSorted(([, a], [, b]) => b - a);
for (const [name, size] of later) report(`lazy: ${name.replace(/^_|src\//, "")}`, size, LAZY_CHUNK);
process.exit(isOver ? 1 : 0);
