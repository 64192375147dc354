/** What other settings of a node become when one of them is set. Pure. */
import type { Json, JsonObject, KindInfo } from "@/api/types";
import { parsePath, readPath } from "@/lib/paths";
import { readSchema } from "./schema";
import { belongs, defaultsOf } from "./shapes";

/** Settings of a node that were taken out because they no longer belonged, by name. */
export type Laid = Map<string, Json>;

/**
 * Settings that follow from a change of a node, `undefined` for those that go. A setting that no longer belongs
 * to the others goes, and is there again once it belongs; what a node begins with at a value is set where
 * nothing is set yet.
 */
export function following(
  kind: KindInfo,
  before: JsonObject,
  after: JsonObject,
  laid: Laid,
): Record<string, Json | undefined> {
  const form = readSchema(kind.schema);
  if (form.shape !== "object") return {};
  const properties = form.properties();
  const defaults = defaultsOf(properties);
  const next: JsonObject = { ...after };
  const changed: Record<string, Json | undefined> = {};
  const change = (name: string, value: Json | undefined) => {
    next[name] = value;
    changed[name] = value;
  };
  const began = beginnings(kind, before, after);
  for (const { name, field } of properties) {
    const had = belongs(field, before, defaults);
    const has = belongs(field, next, defaults);
    const value = next[name];
    if (had && !has && isSet(value)) {
      laid.set(name, value);
      change(name, undefined);
    } else if (has && !isSet(value)) {
      const kept = had ? undefined : laid.get(name);
      if (kept !== undefined) change(name, kept);
      else if (began[name] !== undefined) change(name, began[name]);
    }
  }
  return changed;
}

function beginnings(kind: KindInfo, before: JsonObject, after: JsonObject): JsonObject {
  for (const [path, values] of Object.entries(kind.begins_with)) {
    const [old, now] = [before, after].map((node) => readPath(node, parsePath(path)));
    const begun = old === now ? undefined : values[String(now)];
    if (begun) return begun as JsonObject;
  }
  return {};
}

function isSet(value: Json | undefined): value is Json {
  return value !== undefined && value !== null;
}
