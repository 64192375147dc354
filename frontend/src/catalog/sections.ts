/**
 * The parts of a form: which fields fold together, and what they say in a few words. The catalog says where a
 * field stands; one inside of another may leave it for a part of its own. Pure.
 */
import type { Catalog, Json, JsonObject } from "@/api/types";
import { isObject, readPath } from "@/lib/paths";
import { sum } from "@/lib/statistics";
import { presetOf, withPreset } from "./presets";
import type { Field, Property } from "./schema";
import { belongs, chosenVariant, defaultsOf, isRead } from "./shapes";

type ObjectField = Extract<Field, { shape: "object" }>;

export interface SectionFields {
  path: string[];
  titles: string[];
  field: ObjectField;
  names: string[];
}

export interface FormSection {
  name: string;
  title: string;
  opens: boolean;
  fields: SectionFields[];
}

export function sectionsOf(catalog: Catalog, form: ObjectField): FormSection[] {
  const found = new Map<string, SectionFields[]>();
  const visit = (field: ObjectField, around: string | null, path: string[], titles: string[]) => {
    for (const { name, field: own } of field.properties()) {
      const section = own.section ?? around;
      if (own.section !== null && own.section !== around) note(own.section, field, name);
      if (own.shape === "object") visit(own, section, [...path, name], [...titles, own.title]);
    }
    function note(section: string, holder: ObjectField, name: string) {
      const list = found.get(section) ?? [];
      const known = list.find((one) => one.path.join(".") === path.join("."));
      if (known) known.names.push(name);
      else list.push({ path, titles, field: holder, names: [name] });
      found.set(section, list);
    }
  };
  visit(form, null, [], []);
  return catalog.form_sections.flatMap(({ name, title, opens }) => {
    const fields = found.get(name);
    return fields ? [{ name, title, opens, fields }] : [];
  });
}

/** The part of a form that a field of it stands in, by the path to it; null: above all parts. */
export function sectionAt(form: ObjectField, path: readonly (string | number)[]): string | null {
  let field: Field | undefined = form;
  let section: string | null = null;
  for (const key of path) {
    if (field?.shape !== "object") break;
    field = field.properties().find(({ name }) => name === key)?.field;
    section = field?.section ?? section;
  }
  return section;
}

const MAX_WORDS = 3;

export function summariseSection(
  catalog: Catalog,
  section: FormSection,
  value: JsonObject,
): string {
  const words: string[] = [];
  const say = (field: Field, at: readonly string[], given: Json | undefined) => {
    const own = given ?? (field.shape === "object" && !field.isNullable ? {} : undefined);
    if (own === undefined || own === null || words.length >= MAX_WORDS) return;
    if (field.short !== null && typeof own !== "object") {
      words.push(field.short.replace("{}", () => shortText(own)));
    } else if (field.shape === "object") {
      inside(field, at, isObject(own) ? own : {}, null);
    } else if (field.shape === "tagged" || field.shape === "variants") {
      const variant = chosenVariant(field, own);
      if (variant) say(variant.field, at, own);
    } else if (Array.isArray(own) && field.shape === "list" && !field.fixed) {
      for (const item of own) say(field.item(), at, item);
    }
  };
  const inside = (
    field: ObjectField,
    at: readonly string[],
    own: JsonObject,
    names: readonly string[] | null,
  ) => {
    const properties = withPreset(field.properties(), presetOf(catalog, field, at, own));
    const defaults = defaultsOf(properties);
    for (const { name, field: part } of properties) {
      const isHere = names ? names.includes(name) : (part.section ?? section.name) === section.name;
      if (!isHere || !belongs(part, own, defaults) || !isRead(part, own, defaults)) continue;
      say(part, [...at, name], own[name] ?? part.fallback);
    }
  };
  for (const { path, field, names } of section.fields) {
    const own = readPath(value, path);
    inside(field, path, isObject(own) ? own : {}, names);
  }
  return [...new Set(words)].join(" · ");
}

const LONGEST = 28;

function shortText(value: Json): string {
  if (typeof value === "number") {
    const isTiny = value !== 0 && Math.abs(value) < 0.001;
    return isTiny ? value.toExponential() : value.toLocaleString("en-US");
  }
  const text = String(value);
  return text.length > LONGEST ? `…${text.slice(1 - LONGEST)}` : text;
}

/** How many values differ from what holds without them, inside of a value. */
export function countChanges(field: Field, value: Json | undefined): number {
  if (value === undefined || value === field.fallback) return 0;
  if (!isObject(value)) return 1;
  const own = inner(field, value);
  const counts = Object.entries(value).map(([name, part]) => {
    const property = own.find((one) => one.name === name);
    return property ? countChanges(property.field, part) : 1;
  });
  return Math.max(sum(counts), field.fallback === null ? 1 : 0);
}

/** The properties of an object, whichever shape of a union the value has. */
export function inner(field: Field, value: JsonObject): readonly Property[] {
  if (field.shape === "object") return field.properties();
  const variant = chosenVariant(field, value);
  return variant ? inner(variant.field, value) : [];
}
