import type { Catalog } from "@/api/types";
import { type Field, readSchema, sectionSchema } from "@/catalog/schema";
import { isObject } from "@/lib/paths";
import { defineCommand } from "../command";
import { keepTrueName } from "../trueName";

const PLAIN = new Set<Field["shape"]>(["number", "text"]);

/** Run on a preset; a machine that was described field by field goes. */
export const setHardware = defineCommand<{ catalog: Catalog; preset: string }>(
  "Change hardware",
  (draft, { catalog, preset }) => {
    const hardware = isObject(draft.rest.hardware) ? draft.rest.hardware : {};
    const described = describing(catalog);
    const kept = Object.entries(hardware).filter(([name]) => !described.has(name));
    draft.rest.hardware = { ...Object.fromEntries(kept), preset };
    keepTrueName(draft);
  },
);

/** What describes a machine beside the name of a preset: plain fields that may be left out. */
function describing(catalog: Catalog): Set<string> {
  const schema = sectionSchema(catalog, "hardware");
  const field = schema && readSchema(schema);
  const properties = field?.shape === "object" ? field.properties() : [];
  const plain = properties.filter(
    ({ field: one }) => one.isNullable && one.widget === null && PLAIN.has(one.shape),
  );
  return new Set(plain.map(({ name }) => name));
}
