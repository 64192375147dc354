/**
 * No node kind, no algorithm and no field of the language is named in the front end: what they are, how they
 * look and what can be set comes from the catalog. A literal that equals such a name fails here. Names of fields
 * of one word are everyday words too: those count where a value is compared with them and where they are keys of a
 * table of functions of the loop or the catalog.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, it } from "vitest";
import { readSchema } from "@/catalog/schema";
import { catalog } from "../fixtures/loops";

const SOURCE = join(process.cwd(), "src");
const LITERAL = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\$]|\\.)*)`/g;
const MEMBER = /(?<!\.)\.([a-z]+(?:_[a-z]+)+)\b|\b([a-z]+(?:_[a-z]+)+)\s*\??:/g;

const COMPARED =
  /[=!]==\s*"(\w+)"|case "(\w+)"|^\s+(\w+): \([^)]*\b(?:catalog|document)\b[^)]*\) =>/gm;

const kinds = new Set([
  ...Object.keys(catalog.kinds),
  ...Object.values(catalog.algorithms).flatMap((list) => list.map((one) => one.name)),
]);

/** Words of the API, of marks in schemas and of icons that are words of the language too. */
const ALLOWED: Record<string, readonly string[]> = {
  "api/types.ts": ["value", "template"],
  "document/references.ts": ["template"],
  "features/inspector/form/UnionField.tsx": ["value"],
  "features/models/OnHub.tsx": ["dataset"],
  "features/models/FoundDataset.tsx": ["dataset"],
  "ui/KindIcon.tsx": ["filter", "search"],
};

/** Words that values are compared with: sections of every loop, shapes, controls and marks of the catalog. */
const SECTIONS = ["nodes", "schedule", "phases", "name", "from", "to", "number"];
const COMPARABLE: Record<string, readonly string[]> = {
  "catalog/": ["code", "json", "text"],
  "document/beginNode.ts": ["node"],
  "document/picks.ts": ["text"],
  "document/pools.ts": ["pools"],
  "document/references.ts": ["metric", "node", "path", "template"],
  "document/suggestions.ts": ["metrics", "pools"],
  "features/canvas/": ["code", "node", "select", "source", "text"],
  "features/hardware/": ["link", "part", "tokens"],
  "features/models/": ["cache", "model"],
  "features/inspector/form/": ["code", "json", "regex", "select", "text"],
  "features/samples/SampleTable.tsx": ["best"],
  "features/timeline/TimelinePanel.tsx": ["all"],
  "graph/cardValues.ts": ["text"],
  "graph/edgeKinds.ts": ["learn"],
  "graph/layout.ts": ["learn"],
  "lib/paths.ts": ["set"],
  "state/commands/": ["set"],
};

/** The form of a GPU that no preset describes writes a section of its own. */
const GPU_FORM = ["features/hardware/gpuForm.ts", "features/hardware/GpuDialog.tsx"];

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return /\.tsx?$/.test(entry.name) && !entry.name.endsWith(".gen.ts") ? [path] : [];
  });
}

const files = sources(SOURCE).map((path) => ({
  file: relative(SOURCE, path),
  text: readFileSync(path, "utf-8").replaceAll(/^\s*(?:\/\*\*?|\*|\/\/).*$/gm, ""),
}));

function fieldNames(): Set<string> {
  const names = new Set<string>();
  const visit = (value: unknown) => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === "object" && value !== null) {
      for (const [key, part] of Object.entries(value)) {
        if (key === "properties") for (const name of Object.keys(part as object)) names.add(name);
        visit(part);
      }
    }
  };
  for (const { schema } of Object.values(catalog.kinds)) visit(schema);
  visit(catalog.schema);
  return names;
}

const isComparable = (file: string, word: string) =>
  SECTIONS.includes(word) ||
  Object.entries(COMPARABLE).some(
    ([place, words]) => file.startsWith(place) && words.includes(word),
  );

const literals = files.flatMap(({ file, text }) =>
  [...text.matchAll(LITERAL)].map(
    ([whole, double, single, template]) =>
      [file, whole, double ?? single ?? template ?? ""] as const,
  ),
);

it("no kind or algorithm is a literal", () => {
  const found = literals.filter(
    ([file, , text]) => kinds.has(text) && !ALLOWED[file]?.includes(text),
  );

  expect(found.map(([file, whole]) => `${file}: ${whole}`)).toEqual([]);
});

it("no field is named", () => {
  const fields = new Set([...fieldNames()].filter((name) => name.includes("_")));
  const said = literals.filter(([, , text]) => fields.has(text));
  const members = files.flatMap(({ file, text }) =>
    [...text.matchAll(MEMBER)]
      .map(([, member, key]) => [file, member ?? key ?? ""] as const)
      .filter(([, name]) => fields.has(name)),
  );
  const named = [...said, ...members].filter(([file]) => !GPU_FORM.includes(file));

  expect(named.map(([file, name]) => `${file}: ${name}`)).toEqual([]);
  expect(fields.size).toBeGreaterThan(40);
});

it("no value is compared with a field's name, and no table has one as its key", () => {
  const fields = fieldNames();
  const found = files.flatMap(({ file, text }) =>
    [...text.matchAll(COMPARED)]
      .map(([, compared, other, key]) => compared ?? other ?? key ?? "")
      .filter((word) => fields.has(word) && !isComparable(file, word))
      .map((word) => `${file}: ${word}`),
  );

  expect(found).toEqual([]);
});

it("the catalog names enough to look for", () => {
  expect(kinds.size).toBeGreaterThan(20);
  expect(readSchema(catalog.schema.run ?? {}).shape).toBe("object");
});
