import type { Catalog, Json, JsonObject } from "@/api/types";
import { presetOf, withPreset } from "@/catalog/presets";
import type { Field, Property } from "@/catalog/schema";
import { countChanges } from "@/catalog/sections";
import { belongs, chosenVariant, defaultsOf, isRead } from "@/catalog/shapes";
import { problemsAt } from "@/document/problems";
import { isObject, joinPath, type Path } from "@/lib/paths";
import { sum } from "@/lib/statistics";
import { type FormSettings, levelRank } from "./FormContext";

export type ObjectField = Extract<Field, { shape: "object" }>;

export type Standing = "shown" | "unread" | "hidden" | "kept";

/** `kept`: the level hides it, and it is set. */
export function standingOf(
  form: FormSettings,
  path: Path,
  { name, field, isRequired }: Property,
  value: JsonObject,
  defaults: Record<string, Json | undefined>,
  touched: ReadonlySet<string>,
): Standing {
  if (field.shape === "constant") return "hidden";
  const place = joinPath([...form.base, ...path, name]);
  const isSet = value[name] !== undefined && value[name] !== null;
  const isUnread = !isRead(field, value, defaults);
  const asShown = isUnread && isSet ? "unread" : "shown";
  if (problemsAt(form.diagnostics, place, false).length > 0) return asShown;
  if (form.hidden.fields.includes(place)) return "hidden";
  if (touched.has(name) || form.differing?.has(place)) return asShown;
  const isAbove = levelRank(form, field.level) > levelRank(form, form.level) && !isRequired;
  if (isSet && isAbove && countChanges(field, value[name]) > 0) {
    return form.showsChanged ? asShown : "kept";
  }
  if (isSet && !isAbove) return asShown;
  if (field.isHidden || isUnread || !belongs(field, value, defaults)) return "hidden";
  return isAbove ? "hidden" : "shown";
}

const NONE: ReadonlySet<string> = new Set();

/** How many changed values the level keeps back, the inside of what is shown counted. */
export function countAbove(
  catalog: Catalog,
  form: FormSettings,
  field: Field,
  path: Path,
  value: Json | undefined,
): number {
  const here = { ...form, showsChanged: false };
  if (Array.isArray(value)) {
    const item = itemOf(field, value);
    if (!item) return 0;
    return sum(value.map((one, at) => countAbove(catalog, form, item, [...path, at], one)));
  }
  if (!isObject(value)) return 0;
  if (field.shape === "map") {
    const item = field.item();
    return sum(
      Object.entries(value).map(([key, one]) =>
        countAbove(catalog, form, item, [...path, key], one),
      ),
    );
  }
  if (field.shape !== "object") {
    const variant = chosenVariant(field, value);
    return variant ? countAbove(catalog, form, variant.field, path, value) : 0;
  }
  const properties = withPreset(field.properties(), presetOf(catalog, field, path, value));
  const defaults = defaultsOf(properties);
  return sum(
    properties.map((property) => {
      const { name, field: own } = property;
      const standing = standingOf(here, path, property, value, defaults, NONE);
      if (standing === "kept") return countChanges(own, value[name]);
      if (standing === "hidden") return 0;
      return countAbove(catalog, form, own, [...path, name], value[name]);
    }),
  );
}

function itemOf(field: Field, value: readonly Json[]): Field | null {
  if (field.shape === "list") return field.item();
  const variant = chosenVariant(field, value as Json);
  return variant?.field.shape === "list" ? variant.field.item() : null;
}
