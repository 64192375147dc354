import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";

/** The model of a node with other weights: of a pretrained one the adapter and types stay. Pure. */
export function shownModel(model: Json | undefined, path: string): JsonObject {
  const begins = { type: "pretrained", path };
  if (!isObject(model) || model.type !== begins.type) return begins;
  const { revision: _, ...kept } = model;
  return { ...kept, ...begins };
}
