/** Nodes that rows come from: those that give tables and take nothing. Pure. */
import type { Catalog } from "@/api/types";
import { portRef } from "./edges";
import type { LoopDocument } from "./types";

export function datasetsOf(catalog: Catalog, document: LoopDocument, reached?: string): string[] {
  const all = Object.entries(document.nodes)
    .filter(([, { kind }]) => {
      const info = catalog.kinds[kind];
      return info !== undefined && info.inputs.length === 0 && info.outputs.length > 0;
    })
    .map(([node]) => node);
  if (reached === undefined) return all;
  const above = upstream(document, reached);
  return all.filter((node) => above.has(node));
}

function upstream(document: LoopDocument, node: string): Set<string> {
  const found = new Set<string>();
  const waiting = [node];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const edge of document.edges) {
      const from = portRef(edge.from).node;
      if (portRef(edge.to).node === at && !found.has(from)) {
        found.add(from);
        waiting.push(from);
      }
    }
  }
  return found;
}
