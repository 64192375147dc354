/** The algorithms of a node as they are written, whatever the form: one, by port, or several at a port. Pure. */
import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";

export interface PortAlgorithm {
  /** Null in the short form, which serves whatever is connected. */
  port: string | null;
  settings: JsonObject;
}

/** In the order of the ports as the kind lists them. */
export function algorithmsOf(
  node: JsonObject | undefined,
  ports: readonly string[] = [],
): PortAlgorithm[] {
  const section = node?.algorithm;
  if (!isObject(section)) return [];
  if (typeof section.name === "string") return [{ port: null, settings: section }];
  const inOrder = Object.entries(section).toSorted(
    ([a], [b]) => ports.indexOf(a) - ports.indexOf(b),
  );
  return inOrder.flatMap(([port, entry]) => listed(entry).map((settings) => ({ port, settings })));
}

function listed(entry: Json | undefined): JsonObject[] {
  const entries = Array.isArray(entry) ? entry : [entry];
  return entries.filter((one): one is JsonObject => isObject(one) && typeof one.name === "string");
}
