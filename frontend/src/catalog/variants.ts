import type { Json } from "@/api/types";
import { deepEqual, isObject } from "@/lib/paths";
import type { Field, Variant } from "./schema";
import { inner } from "./sections";
import { chosenVariant, emptyValue, fits } from "./shapes";

type Union = Extract<Field, { shape: "tagged" | "variants" }>;

/** What a union was, by variant, when it was left for another; and what the present one began as. */
export type Visits = Map<string, { value: Json | undefined; began: Json | undefined }>;

const PRESENT = "";

/**
 * The value after going to `to` (null: to nothing). What both shapes have is kept; a shape that was left
 * before comes back as it was, but for what has been changed since in the fields that both have.
 */
export function changeVariant(
  visits: Visits,
  field: Union,
  old: Json | undefined,
  to: Variant | null,
): Json | undefined {
  const from = chosenVariant(field, old);
  const began = visits.get(PRESENT)?.began;
  if (from) visits.set(from.key, { value: old, began: undefined });
  const left = to ? visits.get(to.key)?.value : undefined;
  const next = !to
    ? undefined
    : left === undefined
      ? carry(old, field, to)
      : update(left, old, began, to.field, field.shape === "tagged" ? field.tag : null);
  visits.set(PRESENT, { value: undefined, began: next });
  return next;
}

function carry(old: Json | undefined, field: Union, to: Variant): Json {
  const tag = field.shape === "tagged" ? field.tag : null;
  const fresh = begins(field, to.field);
  if (!isObject(fresh)) return fresh;
  const kept: Record<string, Json | undefined> = { ...fresh };
  if (tag) kept[tag] = to.key;
  if (!isObject(old)) return kept;
  for (const { name, field: own } of inner(to.field, kept)) {
    const value = old[name];
    // A constant is the variant's own; a number does not fit where the other shape has a text.
    if (name !== tag && value !== undefined && own.shape !== "constant" && fits(own, value)) {
      kept[name] = value;
    }
  }
  return kept;
}

/** The default where it has this shape; a range begins at the number of the default. */
function begins(field: Union, to: Field): Json {
  const { fallback } = field;
  if (fallback !== undefined && fallback !== null && fits(to, fallback)) return fallback;
  const ends = to.shape === "list" ? (to.fixed ?? []) : [];
  const isRange = ends.length > 0 && ends.every((item) => item().shape === "number");
  return isRange && typeof fallback === "number" ? ends.map(() => fallback) : emptyValue(to);
}

function update(
  left: Json,
  old: Json | undefined,
  began: Json | undefined,
  field: Field,
  tag: string | null,
): Json {
  if (!isObject(left) || !isObject(old) || !isObject(began)) return left;
  const next = { ...left };
  for (const { name, field: own } of inner(field, left)) {
    const value = old[name];
    if (name === tag || own.shape === "constant" || deepEqual(value, began[name])) continue;
    if (value === undefined) delete next[name];
    else if (fits(own, value)) next[name] = value;
  }
  return next;
}
