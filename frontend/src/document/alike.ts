/** Settings that a new node takes from those around it, such as its model, lengths and learning rate. Pure. */
import type { Catalog, Json, JsonObject } from "@/api/types";
import { parsePath, readPath, writePath } from "@/lib/paths";
import { portRef } from "./edges";
import type { LoopDocument } from "./types";

/**
 * What the node begins with, with the values of its neighbours where both have one. A model that is a snapshot of
 * another node's stays.
 *
 * @param node its name in the loop; null for one that is not there yet
 * @param near the node that it is drawn from, or that is chosen
 */
export function likeNeighbours<Data extends JsonObject>(
  catalog: Catalog,
  document: LoopDocument,
  data: Data,
  node: string | null,
  near?: string,
): Data {
  const paths =
    Object.values(catalog.kinds).find(({ learning }) => learning)?.learning?.alike ?? [];
  const others = around(document, node, near).flatMap((id) => document.nodes[id] ?? []);
  const own = structuredClone(data);
  for (const text of paths) {
    const path = parsePath(text);
    const begun = readPath(own, path) as Json | undefined;
    if (begun === undefined || mentions(begun, document)) continue;
    const value = others
      .map((other) => readPath(other, path) as Json | undefined)
      .find((one) => one !== undefined && one !== null && !mentions(one, document));
    if (value !== undefined) writePath(own, path, structuredClone(value));
  }
  return own;
}

/** The nearest first: what it is drawn from, what it is joined with, and all others in their order. */
function around(document: LoopDocument, node: string | null, near: string | undefined): string[] {
  const joined = document.edges
    .map(({ from, to }) => [portRef(from).node, portRef(to).node])
    .filter((ends) => node !== null && ends.includes(node))
    .flat();
  const all = [...(near === undefined ? [] : [near]), ...joined, ...Object.keys(document.nodes)];
  return [...new Set(all)].filter((id) => id !== node);
}

/** Whether a value, such as a model that is a copy, names a node: it is not taken, because its weights are that node's. */
function mentions(value: Json | null, { nodes }: LoopDocument): boolean {
  const text = JSON.stringify(value);
  return Object.keys(nodes).some((id) => text.includes(`"${id}"`));
}
