/**
 * How much JavaScript a first visit loads, and what comes later on demand. Fails above the budget.
 * Reads the manifest of the last `npm run build`.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const folder = fileURLToPath(new URL("../../backend/coloop_server/_static", import.meta.url));
const manifestPath = join(folder, ".vite/manifest.json");

/** kB of gzipped JavaScript, as the issue and the editor's notes set them. */
const BUDGETS = { "first visit (editor)": 400, "run view": 400 };

if (!existsSync(manifestPath)) {
  console.error("There is no build: run `npm run build` first.");
  process.exit(1);
}
const manifest = JSON.parse(readFileSync(manifestPath, "utf-8"));

const sizes = new Map();
function size(file) {
  if (!sizes.has(file))
    sizes.set(file, gzipSync(readFileSync(join(folder, file)), { level: 9 }).length);
  return sizes.get(file);
}

/** Files that a chunk needs at once, itself included. */
function needs(name, seen = new Set()) {
  const chunk = manifest[name];
  if (!chunk || seen.has(name)) return seen;
  seen.add(name);
  for (const other of chunk.imports ?? []) needs(other, seen);
  return seen;
}

function total(names, extension) {
  const files = new Set();
  for (const name of names) {
    const chunk = manifest[name];
    for (const file of [chunk.file, ...(chunk.css ?? [])])
      if (file.endsWith(extension)) files.add(file);
  }
  return [...files].reduce((sum, file) => sum + size(file), 0);
}

const entry = Object.keys(manifest).find((name) => manifest[name].isEntry);
const find = (part) => Object.keys(manifest).find((name) => name.endsWith(part));
const routes = {
  "first visit (editor)": [entry, find("app/EditorPage.tsx"), find("loops/DropZone.tsx")],
  "run view": [entry, find("runs/RunPage.tsx"), find("loops/DropZone.tsx")],
};
const later = ["yaml/CodeEditor.tsx", "app/CommandPalette.tsx", "palette/AddSearch.tsx"];

const kb = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
let isOver = false;
for (const [route, starts] of Object.entries(routes)) {
  const names = new Set(starts.flatMap((start) => [...needs(start)]));
  const script = total(names, ".js");
  const budget = BUDGETS[route] * 1000;
  isOver ||= script > budget;
  console.log(
    `${route.padEnd(22)} ${kb(script).padStart(9)} JavaScript, ${kb(total(names, ".css"))} CSS, gzipped` +
      ` (budget ${BUDGETS[route]} kB)${script > budget ? "  OVER BUDGET" : ""}`,
  );
}
const first = new Set(
  Object.values(routes)
    .flat()
    .flatMap((start) => [...needs(start)]),
);
for (const part of later) {
  const name = find(part);
  if (!name) continue;
  const own = [...needs(name)].filter((one) => !first.has(one));
  console.log(`${`on demand: ${part}`.padEnd(44)} ${kb(total(own, ".js")).padStart(9)}`);
}
process.exit(isOver ? 1 : 0);
