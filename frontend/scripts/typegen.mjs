/**
 * What the front end has from the service: openapi.json (its API), src/api/schema.gen.ts (types made from
 * that), and the catalog that the tests work with.
 *
 *   npm run typegen          write them anew
 *   npm run typegen:check    fail where they differ from a fresh dump
 *
 * The dumps are made with the repository's Python; without one (PYTHON unset and no .venv) the committed
 * openapi.json is taken as it is.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { typesOf } from "./types.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const dumpPath = join(root, "frontend/openapi.json");
const typesPath = join(root, "frontend/src/api/schema.gen.ts");
const isCheck = process.argv.includes("--check");

const catalogPath = join(root, "frontend/tests/fixtures/catalog.json");
const python = process.env.PYTHON ?? join(root, ".venv/bin/python");
const hasPython = process.env.PYTHON !== undefined || existsSync(python);

const CATALOG = `
from coloop.spec.catalog import catalog
print(catalog().model_dump_json())
`;

function ask(...words) {
  const paths = [join(root, "engine"), join(root, "backend"), process.env.PYTHONPATH];
  const { status, stdout, stderr } = spawnSync(python, words, {
    cwd: root,
    encoding: "utf-8",
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, PYTHONPATH: paths.filter(Boolean).join(delimiter) },
  });
  if (status !== 0) throw new Error(`the service could not be asked:\n${stderr}`);
  return stdout;
}

function differs(path, text) {
  return !existsSync(path) || readFileSync(path, "utf-8") !== text;
}

const api = hasPython ? ask("-m", "coloop_server.openapi") : readFileSync(dumpPath, "utf-8");
const wanted = new Map([
  [dumpPath, api],
  [typesPath, await typesOf(api)],
]);
if (hasPython) wanted.set(catalogPath, ask("-c", CATALOG));

const stale = [...wanted].filter(([path, text]) => differs(path, text));
for (const [path, text] of stale) {
  if (!isCheck) writeFileSync(path, text);
  console.log(`${isCheck ? "differs" : "written"}: ${path.slice(root.length)}`);
}
if (isCheck && stale.length > 0) {
  console.error("The service has changed: run `npm run typegen` and commit the result.");
  process.exit(1);
}
