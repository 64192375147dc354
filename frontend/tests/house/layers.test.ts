/**
 * Who may import whom. A feature knows the layers below it, never another feature and never a page:
 * what two features need lies lower, and what brings features together is a page in `app`.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { expect, it } from "vitest";

/** From the ground up. A folder may import itself and those before it. */
const LAYERS: readonly string[] = [
  "api",
  "lib",
  "catalog",
  "document",
  "graph",
  "state",
  "live",
  "ui",
  "features",
  "app",
];
const SOURCE = join(process.cwd(), "src");
const IMPORT = /(?:from|import)\s*\(?\s*"([^"]+)"/g;

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

/** [file, what it imports], both from `src` on; packages are left out. */
const imports = sources(SOURCE).flatMap((path) => {
  const file = relative(SOURCE, path);
  return [...readFileSync(path, "utf-8").matchAll(IMPORT)].flatMap(([, target = ""]) => {
    if (target.startsWith("@/")) return [[file, target.slice(2)] as const];
    if (target.startsWith(".")) return [[file, normalize(join(dirname(file), target))] as const];
    return [];
  });
});

const parts = (path: string) => path.split("/");

it("a layer imports only what lies below it", () => {
  const rank = (path: string) => LAYERS.indexOf(parts(path)[0] ?? "");
  const upward = imports.filter(
    ([file, target]) =>
      parts(file).length > 1 && parts(target).length > 1 && rank(target) > rank(file),
  );

  expect(upward).toEqual([]);
});

it("features do not import each other", () => {
  const across = imports.filter(
    ([file, target]) =>
      file.startsWith("features/") &&
      target.startsWith("features/") &&
      parts(file)[1] !== parts(target)[1],
  );

  expect(across).toEqual([]);
});

it("panels of the dock come from one file, those of a run from its page", () => {
  const homes = ["app/PanelBody.tsx", "app/RunPage.tsx"];
  const elsewhere = imports.filter(
    ([file, target]) =>
      /\/\w+Panel$/.test(target) && target.startsWith("features/") && !homes.includes(file),
  );

  expect(elsewhere.filter(([, target]) => !target.endsWith("/ChartPanel"))).toEqual([]);
});

it("every folder of the source is a layer", () => {
  const folders = readdirSync(SOURCE, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

  expect(folders.filter((name) => name !== "styles").toSorted()).toEqual(LAYERS.toSorted());
  expect(imports.length).toBeGreaterThan(500);
});
