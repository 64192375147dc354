import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { chosenVariant } from "@/catalog/shapes";
import { deepEqual, isObject, joinPath, type Path } from "@/lib/paths";

export interface Common {
  value: Json | undefined;
  /** By path from the field's own place: the values there, in order, `undefined` where it is not set. */
  differing: Map<string, (Json | undefined)[]>;
}

export function commonOf(field: Field | null, values: readonly (Json | undefined)[]): Common {
  const differing: Common["differing"] = new Map();
  return { value: visit(field, values, [], differing), differing };
}

function visit(
  field: Field | null,
  values: readonly (Json | undefined)[],
  path: Path,
  differing: Common["differing"],
): Json | undefined {
  const [first] = values;
  if (values.every((value) => deepEqual(value, first))) return first;
  const parts = field && partsOf(field, values);
  if (!parts) {
    differing.set(joinPath(path), [...values]);
    return undefined;
  }
  const keys = new Set(values.flatMap((value) => (isObject(value) ? Object.keys(value) : [])));
  const shared: Record<string, Json> = {};
  for (const key of keys) {
    const own = values.map((value) => (isObject(value) ? value[key] : undefined));
    const value = visit(parts(key), own, [...path, key], differing);
    if (value !== undefined) shared[key] = value;
  }
  return shared;
}

/** The fields within, where all values are of one shape with parts; null where they can only be equal or not. */
function partsOf(
  field: Field,
  values: readonly (Json | undefined)[],
): ((key: string) => Field | null) | null {
  if (field.shape === "object") {
    if (!values.every((value) => value === undefined || isObject(value))) return null;
    const properties = field.properties();
    return (key) => properties.find(({ name }) => name === key)?.field ?? field.extra;
  }
  if (field.shape !== "tagged" && field.shape !== "variants") return null;
  const chosen = values.map((value) => (value === undefined ? null : chosenVariant(field, value)));
  const [first] = chosen;
  if (!first || chosen.some((one) => one?.key !== first.key)) return null;
  return partsOf(first.field, values);
}
