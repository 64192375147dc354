/** Nodes that rows come from: those that give tables and take nothing. Pure. */
import type { Catalog, KindInfo } from "@/api/types";
import { isObject } from "@/lib/paths";
import { reachable } from "@/lib/reachable";
import { portRef } from "./edges";
import type { LoopDocument } from "./types";

/** The kind of node whose rows come from a source of data. */
export function rowsKind(catalog: Catalog): KindInfo | undefined {
  return Object.values(catalog.kinds).find(
    ({ inputs, template }) =>
      inputs.length === 0 && isObject(template) && isObject(template.source),
  );
}

export function datasetsOf(catalog: Catalog, document: LoopDocument, reached?: string): string[] {
  const all = Object.entries(document.nodes)
    .filter(([, { kind }]) => {
      const info = catalog.kinds[kind];
      return info !== undefined && info.inputs.length === 0 && info.outputs.length > 0;
    })
    .map(([node]) => node);
  if (reached === undefined) return all;
  const links = document.edges.map(
    ({ from, to }) => [portRef(to).node, portRef(from).node] as const,
  );
  const above = reachable(links, reached);
  return all.filter((node) => node !== reached && above.has(node));
}
