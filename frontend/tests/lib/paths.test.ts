import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deepEqual, parsePath, readPath, removePath, writePath } from "@/lib/paths";

/** Paths and what they name, for this side and the service's. */
const shared = JSON.parse(
  readFileSync(join(process.cwd(), "../tests/fixtures/paths.json"), "utf-8"),
) as { document: object; cases: { path: string; parts: (string | number)[] }[] };

describe("paths", () => {
  it.each(shared.cases)("$path names the longest key that is there", ({ path, parts }) => {
    expect(parsePath(path, shared.document)).toEqual(parts);
  });

  it("numbers in a path are places in a list", () => {
    expect(parsePath("schedule.phases.1.steps")).toEqual(["schedule", "phases", 1, "steps"]);
    expect(readPath({ a: [{ b: 2 }] }, parsePath("a.0.b"))).toBe(2);
    expect(readPath({ a: 1 }, ["a", "b", "c"])).toBeUndefined();
  });

  it("writing makes what is missing on the way", () => {
    const root = {};
    writePath(root, ["a", 0, "b"], 1);
    expect(root).toEqual({ a: [{ b: 1 }] });
  });

  it("removing takes emptied objects along, and items out of lists", () => {
    const root = { a: { b: { c: 1 } }, list: [1, 2, 3], keep: { x: 1, y: 2 } };
    removePath(root, ["a", "b", "c"]);
    removePath(root, ["list", 1]);
    removePath(root, ["keep", "x"]);
    removePath(root, ["nowhere", "at", "all"]);
    expect(root).toEqual({ list: [1, 3], keep: { y: 2 } });
  });

  it("equality looks through objects and passes over undefined", () => {
    expect(deepEqual({ a: [1, { b: null }], c: undefined }, { a: [1, { b: null }] })).toBe(true);
    expect(deepEqual({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(deepEqual([1, 2], { 0: 1, 1: 2 })).toBe(false);
  });
});
