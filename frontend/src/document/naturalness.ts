/** How natural a connection between two nodes is. Pure. */
import type { Catalog } from "@/api/types";
import { reachable } from "@/lib/reachable";
import { inputPort, outputPort } from "./canConnect";
import { edgeFacts, portRef } from "./edges";
import type { Edge, LoopDocument } from "./types";

const SAME_TYPE = 4;
const IS_NEEDED = 3;
const IS_FREE = 1;
const NATURAL = SAME_TYPE + IS_NEEDED;

/**
 * How natural a connection is: of one type, to an input that lacks it, or of what scores a learner's texts, and is
 * not used yet, back to what it learns from. `NATURAL` and above is worth being offered by itself.
 */
export function naturalness(catalog: Catalog, document: LoopDocument, edge: Edge): number {
  const [from, to] = [portRef(edge.from), portRef(edge.to)];
  const input = inputPort(catalog, document, to);
  if (!input || from.node === to.node) return 0;
  const { inputs, outputs } = edgeFacts(document.edges);
  const isFree = !inputs.has(edge.to);
  const flows = document.edges.filter((one) => {
    return inputPort(catalog, document, portRef(one.to))?.teaching !== true;
  });
  const links = flows.map((one) => [portRef(one.from).node, portRef(one.to).node] as const);
  const isBack = reachable(links, to.node).has(from.node);
  const isLesson = input.of !== null && input.teaching && isBack && !outputs.has(edge.from);
  const isNeeded = Boolean(input.required) && isFree && !isBack;
  return (
    (outputPort(catalog, document, from)?.type === input.type ? SAME_TYPE : 0) +
    (isLesson || isNeeded ? IS_NEEDED : 0) +
    (isFree ? IS_FREE : 0)
  );
}

export function isNatural(score: number): boolean {
  return score >= NATURAL;
}
