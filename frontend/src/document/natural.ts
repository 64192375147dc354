/** Connections that a new node begins with, where there is only one that makes sense. Pure. */
import type { Catalog } from "@/api/types";
import { reachable } from "@/lib/reachable";
import { canConnect, inputPort, outputPort } from "./canConnect";
import { edgeFacts, portRef, portText } from "./edges";
import type { Edge, LoopDocument, NodeData, PortRef } from "./types";

/** Inputs that need an edge and have none, of nodes that something flows out of. */
export function lacking(catalog: Catalog, document: LoopDocument): (PortRef & { type: string })[] {
  const { inputs, outputs } = edgeFacts(document.edges);
  return Object.entries(document.nodes).flatMap(([node, { kind }]) => {
    const info = catalog.kinds[kind];
    const isUsed = info?.outputs.some(({ name }) => outputs.has(`${node}.${name}`));
    if (!info || !isUsed) return [];
    return info.inputs
      .filter(({ name, required }) => Boolean(required) && !inputs.has(`${node}.${name}`))
      .map(({ name, type }) => ({ node, port: name, type }));
  });
}

/** Of a node that takes nothing, such as a dataset: an edge to the one input of the loop that lacks what it gives. */
export function naturalEdges(
  catalog: Catalog,
  document: LoopDocument,
  id: string,
  data: NodeData,
): Edge[] {
  const info = catalog.kinds[data.kind];
  if (!info || info.inputs.length > 0) return [];
  const whole = { ...document, nodes: { ...document.nodes, [id]: data } };
  const found = info.outputs.flatMap((port) =>
    lacking(catalog, document)
      .filter(({ type }) => type === port.type)
      .map((target): [PortRef, PortRef] => [{ node: id, port: port.name }, target])
      .filter(([from, to]) => canConnect(catalog, whole, from, to).ok),
  );
  const [only, ...more] = found;
  return only && more.length === 0 ? [{ from: portText(only[0]), to: portText(only[1]) }] : [];
}

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
