/**
 * A name can be a preset of the fields beside it: then their defaults are the preset's. The catalog lists
 * such presets, by teaching port, and marks the fields that choose from them. Pure.
 */
import type { AlgorithmInfo, Catalog, JsonObject } from "@/api/types";
import type { Path } from "@/lib/paths";
import type { Field, Property } from "./schema";

const NONE: ReadonlyMap<string, AlgorithmInfo> = new Map();
const PRESETS = "algorithms";

const isPresetName = ({ field }: Property) => field.choosesFrom === PRESETS;

/** The preset that an object names. Where ports share a name, the port on the way to it decides. */
export function presetOf(
  catalog: Catalog,
  field: Extract<Field, { shape: "object" }>,
  path: Path,
  value: JsonObject,
): AlgorithmInfo | null {
  const property = field.properties().find(isPresetName);
  if (!property) return null;
  const port = path.findLast((key) => typeof key === "string" && key in catalog.algorithms);
  const lists = Object.entries(catalog.algorithms).toSorted(
    ([a], [b]) => Number(b === port) - Number(a === port),
  );
  const name = value[property.name];
  return lists.flatMap(([, list]) => list).find((one) => one.name === name) ?? null;
}

export function withPreset(
  properties: readonly Property[],
  preset: AlgorithmInfo | null,
): readonly Property[] {
  if (!preset) return properties;
  return properties.map((property) => {
    const fallback = preset.defaults[property.name];
    return fallback === undefined
      ? property
      : { ...property, field: { ...property.field, fallback } };
  });
}

export function namesOf(catalog: Catalog, field: Field): ReadonlyMap<string, AlgorithmInfo> {
  const first = field.shape === "tagged" ? field.variants[0]?.field : undefined;
  if (first?.shape !== "object" || !first.properties().some(isPresetName)) return NONE;
  const all = Object.values(catalog.algorithms).flat();
  return new Map(all.toReversed().map((one) => [one.name, one]));
}
