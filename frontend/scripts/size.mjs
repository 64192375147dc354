/**
 * How much JavaScript a page loads before it is drawn, what comes later, and all of it together. Fails above
 * the budgets. Reads the manifest of the last `npm run build`, or of the folder that is named.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const built = fileURLToPath(new URL("../../backend/coloop_server/_static", import.meta.url));
const folder = process.argv[2] ? resolve(process.argv[2]) : built;
const manifestPath = join(folder, ".vite/manifest.json");

/** kB of gzipped JavaScript. */
const BUDGETS = { "first visit (editor)": 250, "run view": 290, "all of it": 488 };

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

/** A file that is renamed is not to be measured as nothing. */
function find(name) {
  if (!manifest[name]) throw new Error(`The build has no chunk of ${name}.`);
  return name;
}

const routes = {
  "first visit (editor)": [entry, "src/app/EditorPage.tsx", "src/features/loops/DropZone.tsx"],
  "run view": [entry, "src/app/RunPage.tsx", "src/features/loops/DropZone.tsx"],
};
const later = [
  "src/features/inspector/Inspector.tsx",
  "src/features/hardware/HardwareBar.tsx",
  "src/app/Toasts.tsx",
  "src/app/CommandPalette.tsx",
  "src/features/palette/AddSearch.tsx",
  "src/ui/code/CodeEditor.tsx",
];

const kb = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
let isOver = false;
function tell(what, script, more = "") {
  const isAbove = script > BUDGETS[what] * 1000;
  isOver ||= isAbove;
  console.log(
    `${what.padEnd(22)} ${kb(script).padStart(9)} JavaScript${more}, gzipped (budget ${BUDGETS[what]} kB)` +
      (isAbove ? "  OVER BUDGET" : ""),
  );
}

const first = new Set();
for (const [route, starts] of Object.entries(routes)) {
  const names = new Set(starts.flatMap((start) => [...needs(find(start))]));
  for (const name of names) first.add(name);
  tell(route, total(names, ".js"), `, ${kb(total(names, ".css"))} CSS`);
}
const scripts = readdirSync(join(folder, "assets")).filter((file) => file.endsWith(".js"));
tell(
  "all of it",
  scripts.reduce((sum, file) => sum + size(join("assets", file)), 0),
);
for (const part of later) {
  const own = [...needs(find(part))].filter((one) => !first.has(one));
  console.log(`${`later: ${part}`.padEnd(46)} ${kb(total(own, ".js")).padStart(9)}`);
}
process.exit(isOver ? 1 : 0);
