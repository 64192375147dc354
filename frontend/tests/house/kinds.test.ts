/**
 * No node kind and no algorithm is named in the front end's features: what they are, how they look and
 * what can be set comes from the catalog. A literal that equals such a name fails here.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, it } from "vitest";
import { catalog } from "../fixtures/loops";

const FEATURES = join(process.cwd(), "src/features");
const LITERAL = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\$]|\\.)*)`/g;

const names = new Set([
  ...Object.keys(catalog.kinds),
  ...Object.values(catalog.algorithms).flatMap((list) => list.map((one) => one.name)),
]);

/**
 * Keys of the catalog's own answer, and of lucide's icons, that happen to be words of the language: each with
 * the file that may say it.
 */
const ALLOWED: Record<string, readonly string[]> = {
  "canvas/KindIcon.tsx": ["filter", "search"],
};

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

it("no kind or algorithm is a literal under features", () => {
  const found: string[] = [];
  for (const path of sources(FEATURES)) {
    const file = relative(FEATURES, path);
    for (const [whole, double, single, template] of readFileSync(path, "utf-8").matchAll(LITERAL)) {
      const text = double ?? single ?? template ?? "";
      if (names.has(text) && !ALLOWED[file]?.includes(text)) found.push(`${file}: ${whole}`);
    }
  }

  expect(found).toEqual([]);
});

it("the catalog names enough to look for", () => {
  expect(names.size).toBeGreaterThan(20);
});
