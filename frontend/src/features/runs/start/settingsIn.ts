/** The settings that a loop has written, by path. Pure. */
import type { Json, JsonObject } from "@/api/types";
import { isObject, joinPath, type Path } from "@/lib/paths";

export interface WrittenSetting {
  path: string;
  value: Json;
}

const PARTS = ["nodes", "schedule", "run"];
/** They say what a part is, and are not tried with other values. */
const FIXED = new Set(["kind", "type", "note"]);

/** Numbers, texts and switches of nodes, schedule and run, in the order of the loop. */
export function settingsIn(spec: JsonObject): WrittenSetting[] {
  return PARTS.flatMap((part) => below(spec[part], [part]));
}

function below(value: Json | undefined, path: Path): WrittenSetting[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((one, place) => below(one, [...path, place]));
  if (isObject(value)) {
    return Object.entries(value)
      .filter(([name]) => !FIXED.has(name))
      .flatMap(([name, one]) => below(one, [...path, name]));
  }
  return [{ path: joinPath(path), value }];
}
