/** A piece of a loop on the clipboard: nodes, the edges among them, and where they stood. Pure. */
import type { Catalog, JsonObject } from "@/api/types";
import { fromSpec } from "./convert";
import { portRef, writeEdge } from "./edges";
import { freeName } from "./names";
import { renameEnd, renameInNodes, renameKey } from "./references";
import { type Edge, EMPTY_DOCUMENT, type LoopDocument, type NodeData, type Point } from "./types";

export interface Fragment {
  nodes: Record<string, NodeData>;
  edges: Edge[];
  layout: Record<string, Point>;
}

const ROW = 160;

export function cutFragment(document: LoopDocument, ids: readonly string[]): Fragment {
  const chosen = new Set(ids);
  const inOrder = Object.keys(document.nodes).filter((id) => chosen.has(id));
  const of = <V>(record: Readonly<Record<string, V>>) =>
    Object.fromEntries(inOrder.flatMap((id) => (record[id] ? [[id, record[id]]] : [])));
  const edges = document.edges.filter(
    (edge) => chosen.has(portRef(edge.from).node) && chosen.has(portRef(edge.to).node),
  );
  return { nodes: of(document.nodes), edges, layout: of(document.layout) };
}

export function toFragmentSpec({ nodes, edges, layout }: Fragment): JsonObject {
  const spec: JsonObject = { nodes: { ...nodes } };
  if (edges.length > 0) spec.edges = edges.map(writeEdge);
  if (Object.keys(layout).length > 0) spec.layout = { ...layout };
  return spec;
}

/** The nodes that read, and the edges among them; what has no place stands below one another. */
export function fromFragmentSpec(spec: JsonObject): Fragment {
  const { nodes, edges, layout } = fromSpec(spec);
  const isThere = (end: string) => portRef(end).node in nodes;
  const places: Record<string, Point> = {};
  for (const [row, id] of Object.keys(nodes).entries()) {
    places[id] = layout[id] ?? [0, row * ROW];
  }
  return {
    nodes,
    edges: edges.filter(({ from, to }) => isThere(from) && isThere(to)),
    layout: places,
  };
}

/** Names that the nodes of a fragment have in a loop: their own where they are free. */
export function namesIn(
  fragment: Pick<Fragment, "nodes">,
  document: Pick<LoopDocument, "nodes">,
): ReadonlyMap<string, string> {
  const taken = new Set([...Object.keys(document.nodes), ...Object.keys(fragment.nodes)]);
  const names = new Map<string, string>();
  for (const id of Object.keys(fragment.nodes)) {
    const name = id in document.nodes ? freeName(id, taken) : id;
    taken.add(name);
    names.set(id, name);
  }
  return names;
}

/** The fragment with free names, moved by `offset`; mentions within it follow. */
export function placeFragment(
  catalog: Catalog,
  fragment: Fragment,
  document: LoopDocument,
  offset: Point,
): Fragment {
  let placed = fragment;
  for (const [id, name] of namesIn(fragment, document)) {
    if (name !== id) placed = renameInFragment(catalog, placed, id, name);
  }
  const layout: Record<string, Point> = {};
  for (const [id, point] of Object.entries(placed.layout)) {
    layout[id] = [point[0] + offset[0], point[1] + offset[1]];
  }
  return { ...placed, edges: placed.edges.map(withoutId), layout };
}

function withoutId({ id: _, ...edge }: Edge): Edge {
  return edge as Edge;
}

function renameInFragment(
  catalog: Catalog,
  { nodes, edges, layout }: Fragment,
  from: string,
  to: string,
): Fragment {
  const renaming = { catalog, document: { ...EMPTY_DOCUMENT, nodes }, from, to };
  return {
    nodes: renameInNodes(nodes, renaming),
    edges: edges.map((edge) => ({
      ...edge,
      from: renameEnd(edge.from, renaming),
      to: renameEnd(edge.to, renaming),
    })),
    layout: renameKey(layout, renaming),
  };
}
