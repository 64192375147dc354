/**
 * The way of one row through a loop: where what it is made of comes from, what is made of it, and what learns from
 * that. A row ends where something is learned or measured. Pure.
 */
import type { Catalog } from "@/api/types";
import { edgeKeys, portRef } from "@/document/edges";
import type { LoopDocument } from "@/document/types";
import { isLearnedFrom } from "./edgeKinds";

export interface Lineage {
  nodes: ReadonlySet<string>;
  edges: ReadonlySet<string>;
  /** Where it begins, and the ports that learn from it. */
  sources: readonly string[];
  losses: readonly string[];
}

export function lineageOf(catalog: Catalog, document: LoopDocument, node: string): Lineage {
  const keys = edgeKeys(document.edges);
  const links = document.edges.map((edge, at) => {
    const [from, to] = [portRef(edge.from), portRef(edge.to)];
    const learns = isLearnedFrom(catalog, document, to);
    return { key: keys[at] ?? "", from: from.node, to: to.node, port: edge.to, learns };
  });
  const edges = new Set<string>();
  const before = new Set([node]);
  // What is added while a set is gone through is gone through as well.
  for (const at of before) {
    for (const { key, from, to, learns } of links) {
      if (to !== at || learns) continue;
      edges.add(key);
      before.add(from);
    }
  }
  const after = new Set([node]);
  const losses: string[] = [];
  const learners = new Set<string>();
  for (const at of after) {
    for (const { key, from, to, port, learns } of links) {
      if (from !== at) continue;
      edges.add(key);
      if (learns) {
        learners.add(to);
        if (!losses.includes(port)) losses.push(port);
      } else {
        after.add(to);
      }
    }
  }
  const isFed = (id: string) => links.some(({ to, learns }) => to === id && !learns);
  return {
    nodes: new Set([...before, ...after, ...learners]),
    edges,
    sources: [...before].filter((id) => !isFed(id)),
    losses,
  };
}
