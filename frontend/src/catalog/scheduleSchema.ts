import type { Catalog } from "@/api/types";
import { type Field, readSchema, sectionSchema } from "./schema";

export function entryField(catalog: Catalog, list: string): Field | null {
  const schema = sectionSchema(catalog, "schedule");
  const schedule = schema && readSchema(schema);
  if (schedule?.shape !== "object") return null;
  const field = schedule.properties().find((property) => property.name === list)?.field;
  return field?.shape === "list" ? field.item() : null;
}

/** Phases and groups share a list; a group is the one that has `phases` of its own. */
export function phaseField(catalog: Catalog, isGroup: boolean): Field | null {
  const item = entryField(catalog, "phases");
  if (!item) return null;
  const fields =
    item.shape === "variants" || item.shape === "tagged"
      ? item.variants.map((one) => one.field)
      : [item];
  return (
    fields.find(
      (field) =>
        field.shape === "object" &&
        field.properties().some((property) => property.name === "phases") === isGroup,
    ) ?? null
  );
}
