/**
 * What the front end has from the service: openapi.json (its API), src/api/schema.gen.ts (types made from
 * that), and the catalog and presets that the tests work with.
 *
 *   npm run typegen          write them anew
 *   npm run typegen:check    fail where they differ from a fresh dump
 *
 * The dumps are made with the repository's Python; without one (PYTHON unset and no .venv) the committed
 * openapi.json is taken as it is.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, askLoops, hasPython, root } from "./python.mjs";
import { typesOf } from "./types.mjs";

const dumpPath = join(root, "frontend/openapi.json");
const typesPath = join(root, "frontend/src/api/schema.gen.ts");
const isCheck = process.argv.includes("--check");

const catalogPath = join(root, "frontend/tests/fixtures/catalog.json");
const presetsPath = join(root, "frontend/tests/fixtures/presets.json");

const CATALOG = `
from coloop.spec.catalog import catalog
print(catalog().model_dump_json())
`;

function differs(path, text) {
  return !existsSync(path) || readFileSync(path, "utf-8") !== text;
}

const api = hasPython ? ask("-m", "coloop_server.openapi") : readFileSync(dumpPath, "utf-8");
const wanted = new Map([
  [dumpPath, api],
  [typesPath, await typesOf(api)],
]);
if (hasPython) wanted.set(catalogPath, ask("-c", CATALOG)).set(presetsPath, askLoops());

const stale = [...wanted].filter(([path, text]) => differs(path, text));
for (const [path, text] of stale) {
  if (!isCheck) writeFileSync(path, text);
  console.log(`${isCheck ? "differs" : "written"}: ${path.slice(root.length)}`);
}
if (isCheck && stale.length > 0) {
  console.error("The service has changed: run `npm run typegen` and commit the result.");
  process.exit(1);
}
