/**
 * JSON Schema of the catalog, read into the few shapes that a form can show.
 *
 * `$ref`, and `null` in a union are resolved here; everything behind knows only `Field`.
 * Knows no node kind and no field name. What it does not understand is shown as plain JSON.
 */

import type { Catalog, Json, JsonSchema } from "@/api/types";
import { formatName } from "@/lib/format";
import { remember } from "@/lib/remember";

export type Choices = NonNullable<JsonSchema["x-choices"]>;
/** As the catalog marks it: an id, a metric of a node, a path through the loop, or Jinja that names nodes. */
export type Reference = NonNullable<JsonSchema["x-reference"]>;

export interface Choice {
  value: Json;
  label: string;
}

export interface Variant {
  /** The tag's value, or the place in the union. */
  key: string;
  title: string;
  field: Field;
}

export interface Property {
  name: string;
  field: Field;
  isRequired: boolean;
}

type FieldFacts = ReturnType<typeof readFacts>;

export type Field = FieldFacts &
  (
    | { shape: "text"; pattern: string | null }
    | {
        shape: "number";
        isWhole: boolean;
        min: number | null;
        max: number | null;
        minExclusive: number | null;
        maxExclusive: number | null;
      }
    | { shape: "flag" }
    | { shape: "choice"; choices: Choice[] }
    | { shape: "constant"; value: Json }
    | { shape: "object"; properties: () => Property[]; extra: Field | null }
    | { shape: "tagged"; tag: string; tagTitle: string; variants: Variant[] }
    | { shape: "variants"; variants: Variant[] }
    | { shape: "list"; item: () => Field; fixed: (() => Field)[] | null }
    | { shape: "map"; item: () => Field }
    | { shape: "json" }
  );

type Defs = Record<string, JsonSchema>;

/** The field of a whole schema, with its own `$defs`. */
export const readSchema = remember(
  (schema: JsonSchema): Field => readField(schema, schema.$defs ?? {}, ""),
);

export function sectionSchema({ schema }: Catalog, part: string): JsonSchema | undefined {
  const parts: Record<string, JsonSchema> = schema;
  return parts[part];
}

function readField(raw: JsonSchema, defs: Defs, name: string): Field {
  const { schema, isNullable } = resolve(raw, defs);
  const facts = readFacts(raw, schema, name, isNullable);
  const union = schema.oneOf ?? schema.anyOf;
  if (union) return { ...facts, ...readUnion(union, schema, defs, name) };
  if (schema.const !== undefined) return { ...facts, shape: "constant", value: schema.const };
  if (schema.enum) return { ...facts, shape: "choice", choices: schema.enum.map(asChoice) };
  switch (typeOf(schema)) {
    case "string":
      return { ...facts, shape: "text", pattern: text(schema.pattern) };
    case "integer":
    case "number":
      return { ...facts, ...readNumber(schema) };
    case "boolean":
      return { ...facts, shape: "flag" };
    case "array":
      return { ...facts, ...readList(schema, defs) };
    case "object":
      return { ...facts, ...readObject(schema, defs) };
    default:
      return { ...facts, shape: "json" };
  }
}

function resolve(raw: JsonSchema, defs: Defs): { schema: JsonSchema; isNullable: boolean } {
  let schema = raw;
  let isNullable = false;
  for (let round = 0; round < 20; round += 1) {
    if (schema.$ref) {
      const { $ref, ...own } = schema;
      schema = { ...(defs[$ref.split("/").at(-1) ?? ""] ?? {}), ...own };
      continue;
    }
    const { anyOf, oneOf, ...own } = schema;
    const union = anyOf ?? oneOf ?? [];
    const rest = union.filter((member) => member.type !== "null");
    if (rest.length < union.length) isNullable = true;
    else if (rest.length !== 1) break;
    schema = rest.length === 1 ? { ...rest[0], ...own } : { ...own, anyOf: rest };
  }
  return { schema, isNullable };
}

function readFacts(raw: JsonSchema, schema: JsonSchema, name: string, isNullable: boolean) {
  const fact = <K extends keyof JsonSchema>(key: K) => raw[key] ?? schema[key];
  return {
    /** Its key in the object around it; "" for the whole. */
    name,
    title: name === "" ? (text(schema.title) ?? "") : (text(raw.title) ?? formatName(name)),
    help: text(raw.description) ?? text(schema.description) ?? "",
    level: fact("x-level") ?? "simple",
    isHot: fact("x-hot") === true,
    isHidden: fact("x-hidden") === true,
    isSolvable: fact("x-solver") === true,
    widget: fact("x-widget") ?? null,
    choosesFrom: fact("x-choices") ?? null,
    reference: fact("x-reference") ?? null,
    keyReference: fact("x-key-reference") ?? null,
    unit: fact("x-unit") ?? null,
    starter: fact("x-starter") ?? null,
    short: fact("x-short") ?? null,
    section: fact("x-section") ?? null,
    fallback: raw.default ?? schema.default,
    isNullable,
    when: fact("x-when") ?? null,
    /** By which of its siblings it is read, and at which of their values; at any where there are none. */
    readWhen: fact("x-read-when") ?? null,
  };
}

function typeOf(schema: JsonSchema): string | undefined {
  if (schema.type) return schema.type;
  return schema.properties ? "object" : undefined;
}

function readNumber(schema: JsonSchema) {
  return {
    shape: "number",
    isWhole: typeOf(schema) === "integer",
    min: schema.minimum ?? null,
    max: schema.maximum ?? null,
    minExclusive: schema.exclusiveMinimum ?? null,
    maxExclusive: schema.exclusiveMaximum ?? null,
  } as const;
}

function readList(schema: JsonSchema, defs: Defs) {
  const items = schema.items ?? {};
  const fixed = schema.prefixItems?.map((item) => once(() => readField(item, defs, ""))) ?? null;
  return { shape: "list", item: once(() => readField(items, defs, "")), fixed } as const;
}

function readObject(schema: JsonSchema, defs: Defs) {
  const { additionalProperties } = schema;
  const extra = typeof additionalProperties === "object" ? additionalProperties : null;
  if (!schema.properties) {
    if (extra === null && additionalProperties === false) {
      return { shape: "object", properties: () => [], extra: null } as const;
    }
    return { shape: "map", item: once(() => readField(extra ?? {}, defs, "")) } as const;
  }
  const required = new Set(schema.required ?? []);
  const entries = Object.entries(schema.properties);
  const properties = once(() =>
    entries.map(([name, property]) => ({
      name,
      field: readField(property, defs, name),
      isRequired: required.has(name),
    })),
  );
  return { shape: "object", properties, extra: extra ? readField(extra, defs, "") : null } as const;
}

function readUnion(union: JsonSchema[], schema: JsonSchema, defs: Defs, name: string) {
  const resolved = union.map((one) => resolve(one, defs).schema);
  const constants = resolved.flatMap(
    (one) => one.enum ?? (one.const !== undefined ? [one.const] : []),
  );
  if (resolved.every((one) => one.enum !== undefined || one.const !== undefined)) {
    return { shape: "choice", choices: constants.map(asChoice) } as const;
  }
  const tag = schema.discriminator?.propertyName ?? sharedTag(resolved, defs);
  if (tag) {
    return {
      shape: "tagged",
      tag,
      tagTitle: tagTitle(resolved[0] ?? {}, tag, defs),
      variants: union.flatMap((one) => tagged(one, tag, defs)),
    } as const;
  }
  const variants = union.map((one, index) => {
    const field = readField(one, defs, "");
    const title = text(resolved[index]?.title) ?? variantTitle(field, name);
    return { key: String(index), title, field };
  });
  return { shape: "variants", variants } as const;
}

/**
 * A member of a union that `tag` tells apart, as variants: one for each value of its tag. A member can be
 * a union of its own, which another tag tells apart, within one value of this one; it stays together.
 */
function tagged(member: JsonSchema, tag: string, defs: Defs): Variant[] {
  const { schema } = resolve(member, defs);
  const values = tagValues(schema, tag, defs);
  const inner = schema.oneOf ?? schema.anyOf;
  if (inner && values.length !== 1) return inner.flatMap((one) => tagged(one, tag, defs));
  const field = readField(member, defs, "");
  return values.map((value) => ({ key: String(value), title: spokenWord(String(value)), field }));
}

function tagTitle(first: JsonSchema, tag: string, defs: Defs): string {
  const inner = (first.oneOf ?? first.anyOf)?.[0];
  if (inner) return tagTitle(resolve(inner, defs).schema, tag, defs);
  return text(first.properties?.[tag]?.title) ?? formatName(tag);
}

/** The values that a property has in a schema that is told apart by it, unions within it counted. */
function tagValues(schema: JsonSchema, tag: string, defs: Defs): Json[] {
  const inner = schema.oneOf ?? schema.anyOf;
  if (inner) {
    const values = inner.flatMap((one) => tagValues(resolve(one, defs).schema, tag, defs));
    return [...new Set(values)];
  }
  const property = schema.properties?.[tag];
  if (!property) return [];
  if (property.const !== undefined) return [property.const];
  return property.enum ?? (property.default !== undefined ? [property.default] : []);
}

/** A property of which no two variants share a value tells them apart. */
function sharedTag(variants: JsonSchema[], defs: Defs): string | null {
  const [first] = variants;
  for (const name of Object.keys(first?.properties ?? {})) {
    const values = variants.map((one) => tagValues(one, name, defs));
    const all = values.flat();
    if (values.every((own) => own.length > 0) && new Set(all).size === all.length) return name;
  }
  return null;
}

function variantTitle(field: Field, name: string): string {
  switch (field.shape) {
    case "choice":
      return field.choices.length <= 3
        ? field.choices.map((one) => spokenWord(one.label)).join(" | ")
        : "choice";
    case "constant":
      return String(field.value);
    case "list":
      return field.fixed ? "range" : "list";
    case "object": {
      const properties = field.properties();
      const needed = properties.filter((property) => property.isRequired);
      const names = needed.map((property) => spokenWord(property.name));
      return names.slice(0, 2).join(", ") || formatName(name);
    }
    case "tagged":
    case "variants":
      return field.variants.length <= 3
        ? field.variants.map((one) => one.title).join(" | ")
        : "by name";
    default:
      return TITLES[field.shape];
  }
}

const TITLES = {
  text: "text",
  number: "number",
  flag: "yes or no",
  map: "by name",
  json: "as written",
} as const;

function spokenWord(word: string): string {
  return word.replaceAll("_", " ");
}

function asChoice(value: Json): Choice {
  return { value, label: value === null ? "none" : String(value) };
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Schemas refer to themselves, so their parts are read when asked for. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
