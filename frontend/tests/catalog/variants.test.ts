/**
 * What a form shows of every loop that there is: each value is one that its control can show, each
 * union shows which of its shapes is chosen, and going to another shape and back loses nothing.
 */
import { describe, expect, it } from "vitest";
import type { Json } from "@/api/types";
import { type Field, readSchema, type Variant } from "@/catalog/schema";
import { chosenVariant, emptyValue, fits } from "@/catalog/shapes";
import { changeVariant, type Visits } from "@/catalog/variants";
import { isObject } from "@/lib/paths";
import { catalog } from "../fixtures/loops";
import { loops, partsOf } from "../fixtures/spoken";

interface Union {
  place: string;
  field: Extract<Field, { shape: "tagged" | "variants" }>;
  value: Json;
}

/** Every union with a value in it, and every value that no control can show. */
function look(place: string, field: Field, value: Json, unions: Union[], odd: string[]): void {
  if (value === null) {
    if (!field.isNullable && field.shape !== "json") odd.push(`${place} is null`);
    return;
  }
  switch (field.shape) {
    case "tagged":
    case "variants": {
      unions.push({ place, field, value });
      const chosen = chosenVariant(field, value);
      if (chosen) look(`${place}<${chosen.key}>`, chosen.field, value, unions, odd);
      return;
    }
    case "object": {
      const properties = new Map(field.properties().map((one) => [one.name, one.field]));
      for (const [name, part] of Object.entries(isObject(value) ? value : {})) {
        const own = properties.get(name) ?? field.extra;
        if (part === undefined) continue;
        if (own) look(`${place}.${name}`, own, part, unions, odd);
        else odd.push(`${place}.${name} is no field`);
      }
      return;
    }
    case "map":
      for (const [name, part] of Object.entries(isObject(value) ? value : {})) {
        if (part !== undefined) look(`${place}.${name}`, field.item(), part, unions, odd);
      }
      return;
    case "list":
      if (!Array.isArray(value)) odd.push(`${place} is no list`);
      else
        value.forEach((part, index) => {
          look(`${place}.${index}`, field.fixed?.[index]?.() ?? field.item(), part, unions, odd);
        });
      return;
    default:
      if (!fits(field, value))
        odd.push(`${place} is ${JSON.stringify(value)}, not a ${field.shape}`);
  }
}

function seen() {
  const unions: Union[] = [];
  const odd: string[] = [];
  for (const [name, loop] of Object.entries(loops)) {
    for (const { place, field, value } of partsOf(name, loop))
      look(place, field, value, unions, odd);
  }
  return { unions, odd };
}

const { unions, odd } = seen();
const tagOf = (field: Field) => (field.shape === "tagged" ? field.tag : null);

describe("forms of every loop that there is", () => {
  it("there is enough to look at", () => {
    expect(Object.keys(loops).length).toBeGreaterThanOrEqual(9);
    expect(unions.length).toBeGreaterThan(100);
  });

  it("every value is one that its control can show", () => {
    expect(odd).toEqual([]);
  });

  it("every union shows which shape is chosen", () => {
    const unchosen = unions.filter(({ field, value }) => {
      const chosen = chosenVariant(field, value);
      return chosen === null || !fits(chosen.field, value);
    });

    expect(unchosen.map(({ place }) => place)).toEqual([]);
  });

  it("no shape is called by its place in the union", () => {
    const nameless = unions.flatMap(({ place, field }) =>
      field.variants.filter(({ title }) => /^\d*$|^other$|algorithms/.test(title)).map(() => place),
    );

    expect(nameless).toEqual([]);
  });

  it("what is changed meanwhile in a field that both shapes have stays changed", () => {
    const field = readSchema({
      oneOf: [
        { properties: { type: { const: "x" }, seed: { type: "integer" }, a: { type: "string" } } },
        { properties: { type: { const: "y" }, seed: { type: "integer" } } },
      ],
    });
    if (field.shape !== "tagged") throw new Error("a shared constant tells apart");
    const [x = null, y = null] = field.variants;
    const visits: Visits = new Map();

    const there = changeVariant(visits, field, { type: "x", seed: 1, a: "kept" }, y);
    expect(there).toEqual({ type: "y", seed: 1 });

    expect(changeVariant(visits, field, { type: "y", seed: 2 }, x)).toEqual({
      type: "x",
      seed: 2,
      a: "kept",
    });
  });

  it("a shape begins with the default where that fits, and a range at its number", () => {
    const field = readSchema({
      anyOf: [
        { type: "integer" },
        { type: "array", prefixItems: [{ type: "integer" }, { type: "integer" }] },
      ],
      default: 2,
    });
    if (field.shape !== "variants") throw new Error("nothing tells them apart");
    const begun = field.variants.map((to) => changeVariant(new Map(), field, undefined, to));

    expect(begun).toEqual([2, [2, 2]]);
  });

  it("each other shape is a value of that shape, and coming back loses nothing", () => {
    const wrong: string[] = [];
    for (const { place, field, value } of unions) {
      const first = chosenVariant(field, value);
      const visits: Visits = new Map();
      let [now, at]: [Json | undefined, Variant | null] = [value, first];
      for (const other of field.variants) {
        if (other.key === first?.key) continue;
        now = changeVariant(visits, field, now, other);
        at = chosenVariant(field, now);
        if (at?.key !== other.key) wrong.push(`${place}: ${other.key} became ${at?.key}`);
        if (now !== undefined && !fits(other.field, now))
          wrong.push(`${place}: ${other.key} does not fit`);
      }
      now = changeVariant(visits, field, now, null);
      expect(now).toBeUndefined();
      if (first) expect(changeVariant(visits, field, now, first), place).toEqual(value);
      expect(tagOf(field) === null || typeof tagOf(field) === "string").toBe(true);
    }

    expect(wrong).toEqual([]);
  });
});

/** Every union of a schema, whether or not a loop uses it. */
function allUnions(field: Field, place: string, found: Union[], depth = 0): Union[] {
  if (depth > 7) return found;
  const below = (own: Field, name: string) => allUnions(own, `${place}.${name}`, found, depth + 1);
  if (field.shape === "object") for (const one of field.properties()) below(one.field, one.name);
  if (field.shape === "list" || field.shape === "map") below(field.item(), "*");
  if (field.shape === "tagged" || field.shape === "variants") {
    found.push({ place, field, value: null });
    for (const one of field.variants) below(one.field, `<${one.key}>`);
  }
  return found;
}

it.each(Object.values(catalog.kinds).map((kind) => [kind.kind, kind] as const))(
  "every shape that a %s can have is chosen once it is begun",
  (_, { kind, schema }) => {
    const wrong = allUnions(readSchema(schema), kind, []).flatMap(({ place, field }) =>
      field.variants
        .filter((variant) => {
          const begun = changeVariant(new Map(), field, undefined, variant) ?? emptyValue(field);
          return chosenVariant(field, begun)?.key !== variant.key;
        })
        .map(({ key }) => `${place}: ${key}`),
    );

    expect([...new Set(wrong)]).toEqual([]);
  },
);
