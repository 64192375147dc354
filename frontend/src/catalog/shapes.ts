import type { InputPort, Json, JsonObject, KindInfo } from "@/api/types";
import { isObject, parsePath, readPath } from "@/lib/paths";
import { type Field, type Property, readSchema, type Variant } from "./schema";

export function chosenVariant(field: Field, value: Json | undefined): Variant | null {
  if (field.shape === "tagged") {
    const tag = isObject(value) ? value[field.tag] : undefined;
    return field.variants.find((variant) => variant.key === tag) ?? null;
  }
  if (field.shape !== "variants") return null;
  if (value === undefined || value === null) return null;
  const fitting = field.variants.find((variant) => fits(variant.field, value));
  // A text where a number is expected is a number that was typed wrong.
  const meant = typeof value === "string" ? "number" : null;
  return fitting ?? field.variants.find((variant) => variant.field.shape === meant) ?? null;
}

export function fits(field: Field, value: Json): boolean {
  if (value === null) return field.isNullable || field.shape === "json";
  switch (field.shape) {
    case "text":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "flag":
      return typeof value === "boolean";
    case "choice":
      return field.choices.some((choice) => choice.value === value);
    case "constant":
      return field.value === value;
    case "list":
      return Array.isArray(value) && (!field.fixed || field.fixed.length === value.length);
    case "map":
      return isObject(value);
    case "object": {
      if (!isObject(value)) return false;
      const names = new Set(field.properties().map((property) => property.name));
      return Object.keys(value).every((key) => names.has(key) || field.extra !== null);
    }
    case "tagged":
      return chosenVariant(field, value) !== null;
    case "variants":
      return field.variants.some((variant) => fits(variant.field, value));
    case "json":
      return true;
  }
}

/** A value to begin with: what is required or has a text to begin with; else defaults, or something empty. */
export function emptyValue(field: Field): Json {
  if (field.starter !== null) return field.starter;
  if (field.fallback !== undefined && field.fallback !== null) return field.fallback;
  switch (field.shape) {
    case "text":
      return "";
    case "number":
      return field.min ?? (field.minExclusive !== null && field.minExclusive >= 0 ? 1 : 0);
    case "flag":
      return false;
    case "choice":
      return field.choices[0]?.value ?? null;
    case "constant":
      return field.value;
    case "list":
      return field.fixed ? field.fixed.map((item) => emptyValue(item())) : [];
    case "object": {
      const value: Record<string, Json> = {};
      for (const property of field.properties()) {
        if (property.isRequired || property.field.starter !== null)
          value[property.name] = emptyValue(property.field);
      }
      return value;
    }
    case "tagged":
    case "variants": {
      const [first] = field.variants;
      return first ? emptyValue(first.field) : null;
    }
    case "map":
      return {};
    case "json":
      return null;
  }
}

/** Whether a field belongs to the present values of its siblings (`x-when`). */
export function belongs(
  field: Field,
  siblings: Json | undefined,
  defaults: Record<string, Json | undefined>,
): boolean {
  return !field.when || holds(field.when, siblings, defaults);
}

/** Whether each of these paths has one of its values; null stands for nothing. */
function holds(
  when: Readonly<Record<string, readonly Json[]>>,
  siblings: Json | undefined,
  defaults: Record<string, Json | undefined>,
): boolean {
  return Object.entries(when).every(([path, wanted]) => {
    const keys = parsePath(path);
    const value =
      readPath(siblings, keys) ?? (keys.length === 1 ? defaults[path] : undefined) ?? null;
    return wanted.some((one) => one === value);
  });
}

/** Whether a node makes anything of its port with the settings that it has. */
export function isOfUse(
  { when }: Pick<InputPort, "when">,
  kind: Pick<KindInfo, "schema">,
  node: Json | undefined,
): boolean {
  if (Object.keys(when).length === 0) return true;
  const form = readSchema(kind.schema);
  return holds(when, node, form.shape === "object" ? defaultsOf(form.properties()) : {});
}

/** Whether anything reads a field at the present values of its siblings (`x-read-when`). */
export function isRead(
  { readWhen }: Pick<Field, "readWhen">,
  siblings: JsonObject,
  defaults: Record<string, Json | undefined>,
): boolean {
  return Object.entries(readWhen ?? {}).every(([name, wanted]) => {
    const value = siblings[name] ?? defaults[name] ?? null;
    return wanted.length === 0 ? value !== null : wanted.some((one) => one === value);
  });
}

export function defaultsOf(properties: readonly Property[]): Record<string, Json | undefined> {
  return Object.fromEntries(properties.map(({ name, field }) => [name, field.fallback]));
}

export function isSimple(field: Field): boolean {
  return ["text", "number", "flag", "choice", "constant"].includes(field.shape) && !isLong(field);
}

export function isFlat(field: Field): boolean {
  return field.shape === "variants" && field.variants.every(({ field: own }) => isSimple(own));
}

const LONG = ["code", "text", "regex"];

export function isLong(field: Field): boolean {
  return LONG.includes(field.widget ?? "");
}

export function defaultText(field: Field): string {
  const { fallback } = field;
  if (fallback === undefined) return "";
  if (fallback === null)
    return field.isNullable && field.widget !== "text" ? unsetText(field.help) : "";
  if (typeof fallback === "object") {
    return Array.isArray(fallback) && fallback.length > 0 ? JSON.stringify(fallback) : "";
  }
  return String(fallback);
}

const LONGEST = 18;

/** Help says what `null` means: "…; null: as the source." A long meaning is left to the help. */
function unsetText(help: string): string {
  const meaning = /\bnull:\s*([^.;]+)/i.exec(help)?.[1]?.replaceAll("`", "").trim();
  if (!meaning) return "not set";
  if (meaning.startsWith("decided by the compiler")) return "auto";
  return meaning.length <= LONGEST ? meaning : "auto";
}
