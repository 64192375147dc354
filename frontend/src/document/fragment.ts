/** A piece of a loop on the clipboard: nodes, the edges among them, and where they stood. Pure. */
import type { Catalog } from "@/api/types";
import { isObject } from "@/lib/paths";
import { portRef, portText, readEdge } from "./edges";
import { freeName } from "./names";
import { renameInNode } from "./references";
import { type Edge, EMPTY_DOCUMENT, type LoopDocument, type NodeData, type Point } from "./types";

export interface Fragment {
  nodes: Record<string, NodeData>;
  edges: Edge[];
  layout: Record<string, Point>;
}

const MARK = "coloop/fragment";

export function cutFragment(document: LoopDocument, ids: readonly string[]): Fragment {
  const chosen = new Set(ids);
  const fragment: Fragment = { nodes: {}, edges: [], layout: {} };
  for (const [id, node] of Object.entries(document.nodes)) {
    if (!chosen.has(id)) continue;
    fragment.nodes[id] = node;
    const point = document.layout[id];
    if (point) fragment.layout[id] = point;
  }
  fragment.edges = document.edges.filter(
    (edge) => chosen.has(portRef(edge.from).node) && chosen.has(portRef(edge.to).node),
  );
  return fragment;
}

export function writeFragment(fragment: Fragment): string {
  return JSON.stringify({ type: MARK, version: 1, ...fragment }, null, 1);
}

export function readFragment(text: string): Fragment | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value.type !== MARK || !isObject(value.nodes)) return null;
  const nodes: Record<string, NodeData> = {};
  for (const [id, node] of Object.entries(value.nodes)) {
    if (isObject(node) && typeof node.kind === "string") nodes[id] = { ...node, kind: node.kind };
  }
  const edges = (Array.isArray(value.edges) ? value.edges : [])
    .map((edge) => readEdge(edge))
    .filter((edge): edge is Edge => edge !== null);
  return {
    nodes,
    edges,
    layout: (isObject(value.layout) ? value.layout : {}) as Record<string, Point>,
  };
}

/** The fragment with free names, moved by `offset`; mentions within it follow. */
export function placeFragment(
  catalog: Catalog,
  fragment: Fragment,
  document: LoopDocument,
  offset: Point,
): Fragment {
  const taken = new Set([...Object.keys(document.nodes), ...Object.keys(fragment.nodes)]);
  let placed = fragment;
  for (const id of Object.keys(fragment.nodes)) {
    const name = id in document.nodes ? freeName(id, taken) : id;
    taken.add(name);
    if (name !== id) placed = renameInFragment(catalog, placed, id, name);
  }
  const layout: Record<string, Point> = {};
  for (const [id, point] of Object.entries(placed.layout)) {
    layout[id] = [point[0] + offset[0], point[1] + offset[1]];
  }
  return { ...placed, edges: placed.edges.map(withoutId), layout };
}

/** Edge ids are names of the loop and not copied. */
function withoutId({ id: _, ...edge }: Edge): Edge {
  return edge as Edge;
}

function renameInFragment(
  catalog: Catalog,
  fragment: Fragment,
  from: string,
  to: string,
): Fragment {
  const document = { ...EMPTY_DOCUMENT, nodes: fragment.nodes };
  const move = <V>(record: Record<string, V>): Record<string, V> =>
    Object.fromEntries(Object.entries(record).map(([id, value]) => [id === from ? to : id, value]));
  const end = (text: string) => {
    const ref = portRef(text);
    return ref.node === from ? portText({ node: to, port: ref.port }) : text;
  };
  const nodes: Record<string, NodeData> = {};
  for (const [id, node] of Object.entries(move(fragment.nodes))) {
    nodes[id] = renameInNode(node, { catalog, document, from, to }) as NodeData;
  }
  return {
    nodes,
    edges: fragment.edges.map((edge) => ({ ...edge, from: end(edge.from), to: end(edge.to) })),
    layout: move(fragment.layout),
  };
}
