import { describe, expect, it } from "vitest";
import type { JsonSchema } from "@/api/types";
import { entryField, phaseField } from "@/catalog/scheduleSchema";
import { type Field, readSchema } from "@/catalog/schema";
import { belongs, chosenVariant, defaultText, emptyValue } from "@/catalog/shapes";
import { changeVariant } from "@/catalog/variants";
import { catalog } from "../fixtures/loops";

const property = (field: Field | null, name: string): Field => {
  const found =
    field?.shape === "object"
      ? field.properties().find((one) => one.name === name)?.field
      : undefined;
  if (!found) throw new Error(`no property ${name}`);
  return found;
};

/** Every field of a schema, down to a depth that reaches through unions, lists and maps. */
function walk(field: Field, visit: (field: Field) => void, depth = 0): void {
  visit(field);
  if (depth > 7) return;
  if (field.shape === "object")
    for (const one of field.properties()) walk(one.field, visit, depth + 1);
  if (field.shape === "tagged" || field.shape === "variants") {
    for (const one of field.variants) walk(one.field, visit, depth + 1);
  }
  if (field.shape === "list" || field.shape === "map") walk(field.item(), visit, depth + 1);
}

describe("fields from JSON Schema", () => {
  it("reads null in a union as nullable", () => {
    const field = readSchema({
      anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }],
      default: null,
    });

    expect(field).toMatchObject({
      shape: "number",
      isWhole: true,
      min: 1,
      isNullable: true,
      fallback: null,
    });
  });

  it("follows references and keeps what stands beside them", () => {
    const schema: JsonSchema = {
      $defs: { Engine: { enum: ["a", "b"], type: "string" } },
      type: "object",
      properties: {
        engine: {
          $ref: "#/$defs/Engine",
          description: "Which.",
          default: "b",
          "x-level": "expert",
        },
      },
    };

    expect(property(readSchema(schema), "engine")).toMatchObject({
      shape: "choice",
      help: "Which.",
      fallback: "b",
      level: "expert",
    });
  });

  it("tells variants apart by the constant that they share", () => {
    const field = readSchema({
      anyOf: [
        {
          type: "object",
          properties: { type: { const: "x" }, a: { type: "string" } },
          required: ["type", "a"],
        },
        {
          type: "object",
          properties: { type: { const: "y" }, b: { type: "number" } },
          required: ["type", "b"],
        },
      ],
    });

    expect(field).toMatchObject({ shape: "tagged", tag: "type" });
    expect(chosenVariant(field, { type: "y", b: 1 })?.key).toBe("y");
  });

  it("shapes are called as the schema calls them", () => {
    const field = readSchema({
      $defs: { Text: { type: "string", title: "Text" } },
      anyOf: [
        { $ref: "#/$defs/Text", title: "just one" },
        { type: "array", items: { type: "string" } },
      ],
    });

    expect(field.shape === "variants" && field.variants.map((one) => one.title)).toEqual([
      "just one",
      "list",
    ]);
  });

  it("a schema that contains itself is read as far as it is asked", () => {
    const schema: JsonSchema = {
      $defs: { Tree: { type: "object", properties: { child: { $ref: "#/$defs/Tree" } } } },
      $ref: "#/$defs/Tree",
    };

    expect(property(property(readSchema(schema), "child"), "child").shape).toBe("object");
  });

  it("going to another variant keeps what both have", () => {
    const field = readSchema({
      oneOf: [
        {
          type: "object",
          properties: { type: { const: "x" }, path: { type: "string" } },
          required: ["type", "path"],
        },
        {
          type: "object",
          properties: {
            type: { const: "y" },
            path: { type: "string" },
            n: { type: "integer", minimum: 2 },
          },
          required: ["type", "n"],
        },
      ],
    });
    if (field.shape !== "tagged") throw new Error("a shared constant tells apart");
    const other = field.variants[1] ?? null;

    expect(changeVariant(new Map(), field, { type: "x", path: "p" }, other)).toEqual({
      type: "y",
      n: 2,
      path: "p",
    });
  });

  it("a field belongs only where its condition holds, defaults counted", () => {
    const field = readSchema({ type: "integer", "x-when": { backend: ["fast"] } });

    expect(belongs(field, { backend: "fast" }, {})).toBe(true);
    expect(belongs(field, {}, { backend: "fast" })).toBe(true);
    expect(belongs(field, { backend: "slow" }, { backend: "fast" })).toBe(false);
  });

  it("what null means is read from the help", () => {
    const field = (description: string) =>
      readSchema({ anyOf: [{ type: "string" }, { type: "null" }], default: null, description });

    expect(defaultText(field("A pool; null: `main`."))).toBe("main");
    expect(defaultText(field("Size. Null: decided by the compiler."))).toBe("auto");
    expect(defaultText(field("Size."))).toBe("not set");
  });
});

describe("the catalog's schemas", () => {
  it.each(Object.values(catalog.kinds).map((kind) => [kind.kind, kind] as const))(
    "%s reads whole",
    (_, kind) => {
      const field = readSchema(kind.schema);
      let unknown = 0;
      let seen = 0;
      walk(field, (one) => {
        seen += 1;
        if (one.shape === "json") unknown += 1;
      });

      expect(field.shape).toBe("object");
      expect(seen).toBeGreaterThan(3);
      // Only what is free by design (values of columns, overrides) may be shown as JSON.
      expect(unknown / seen).toBeLessThan(0.25);
    },
  );

  it("phases, groups, triggers and annealings have forms", () => {
    expect(property(phaseField(catalog, false), "steps").shape).toBe("number");
    expect(property(phaseField(catalog, true), "repeat").shape).toBe("number");
    expect(entryField(catalog, "triggers")?.shape).toBe("object");
    expect(entryField(catalog, "anneal")?.shape).toBe("object");
  });

  it("every icon, colour and group of the catalog is known to the page", async () => {
    const { readFileSync } = await import("node:fs");
    const tokens = readFileSync("src/styles/tokens.css", "utf-8");
    const icons = readFileSync("src/ui/KindIcon.tsx", "utf-8");

    for (const kind of Object.values(catalog.kinds)) {
      expect(tokens).toContain(`--group-${kind.group}:`);
      expect(icons).toMatch(new RegExp(`"?${kind.icon}"?:`));
    }
    for (const type of Object.values(catalog.port_types))
      expect(tokens).toContain(`${type.color}:`);
  });

  it("something to begin with can be made of every field", () => {
    for (const kind of Object.values(catalog.kinds)) {
      walk(readSchema(kind.schema), (field) => {
        expect(emptyValue(field)).not.toBe(undefined);
      });
    }
  });
});
