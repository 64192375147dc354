import { describe, expect, it } from "vitest";
import { type Field, readSchema, type Variant } from "@/catalog/schema";
import { catalog } from "../fixtures/loops";

const schemas = {
  ...catalog.schema,
  ...Object.fromEntries(Object.entries(catalog.kinds).map(([name, kind]) => [name, kind.schema])),
};

/** Names of the schema's classes, as they are and spelled out, one-word names apart: those are words. */
const classNames = new Set(
  Object.values(schemas)
    .flatMap((schema) => Object.keys(schema.$defs ?? {}))
    .filter((name) => /[a-z][A-Z]/.test(name))
    .flatMap((name) => [name.toLowerCase(), spelledOut(name)]),
);

function spelledOut(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

/** What a form shows of a schema: titles of fields, and of the shapes that each may have, tags apart: those are words. */
function titlesIn(name: string, field: Field): [string, string][] {
  const found: [string, string][] = [];
  const visit = (one: Field, place: string, variant: Variant | null, depth: number): void => {
    if (variant) found.push([place, variant.title]);
    else if (one.name !== "") found.push([place, one.title]);
    if (depth > 9) return;
    if (one.shape === "object")
      for (const own of one.properties()) visit(own.field, `${place}.${own.name}`, null, depth + 1);
    if (one.shape === "tagged" || one.shape === "variants")
      for (const own of one.variants)
        visit(own.field, place, one.shape === "variants" ? own : null, depth + 1);
    if (one.shape === "list" || one.shape === "map") visit(one.item(), place, null, depth + 1);
  };
  visit(field, name, null, 0);
  return found;
}

describe.each(Object.entries(schemas))("what the form of %s is called", (name, schema) => {
  const titles = titlesIn(name, readSchema(schema));

  it("has words everywhere", () => {
    const isNoWord = (title: string) => title.trim() === "" || /^(?:[A-Z][a-z]+){2,}$/.test(title);
    expect(titles.filter(([, title]) => isNoWord(title))).toEqual([]);
    const joined = titles.filter(([, title]) => title.includes("_"));
    expect(joined).toEqual([]);
  });

  it("names no class", () => {
    const words = new Set(titles.map(([place]) => place.split(".").at(-1)?.replaceAll("_", " ")));
    const leaks = titles.filter(([, title]) =>
      title
        .toLowerCase()
        .split(/ \| | \/ /)
        .some((part) => classNames.has(part) && !words.has(part)),
    );
    expect(leaks).toEqual([]);
  });
});

it("tells the shapes of a learner's algorithm by what they are", () => {
  const actor = readSchema(catalog.kinds.actor?.schema ?? {});
  const field =
    actor.shape === "object"
      ? actor.properties().find((one) => one.name === "algorithm")?.field
      : undefined;
  if (field?.shape !== "variants") throw new Error("an algorithm has two shapes");

  expect(field.variants.map((one) => one.title)).toEqual(["one algorithm", "one for each port"]);
});
