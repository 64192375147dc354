/**
 * A name can be a preset of the fields beside it: then their defaults are the preset's. The catalog lists
 * such presets under `algorithms`, by teaching port. Pure.
 */
import type { Catalog, JsonObject } from "@/api/types";
import type { Property } from "@/catalog/schema";
import type { Path } from "@/lib/paths";

const PRESET_SECTION = "algorithm";

export function presetDefaults(catalog: Catalog, path: Path, value: JsonObject): JsonObject | null {
  const at = path.indexOf(PRESET_SECTION);
  if (at < 0 || typeof value.name !== "string") return null;
  const port = path[at + 1];
  const lists =
    typeof port === "string" && catalog.algorithms[port]
      ? [catalog.algorithms[port]]
      : Object.values(catalog.algorithms);
  for (const list of lists) {
    const found = list.find((one) => one.name === value.name);
    if (found) return found.defaults ?? null;
  }
  return null;
}

export function withPreset(
  properties: readonly Property[],
  preset: JsonObject | null,
): readonly Property[] {
  if (!preset) return properties;
  return properties.map((property) => {
    const fallback = preset[property.name];
    return fallback === undefined
      ? property
      : { ...property, field: { ...property.field, fallback } };
  });
}

/** Help of the chosen preset: what it does, and its formula. */
export function presetHelp(
  catalog: Catalog,
  path: Path,
  value: JsonObject,
): { help: string; formula: string } | null {
  if (!path.includes(PRESET_SECTION) || typeof value.name !== "string") return null;
  for (const list of Object.values(catalog.algorithms)) {
    const found = list.find((one) => one.name === value.name);
    if (found) return { help: found.help ?? "", formula: found.formula ?? "" };
  }
  return null;
}
