/**
 * Automatic layout from left to right, in the direction of the data.
 * Edges that only carry learning back to where the data came from do not pull boxes around.
 */
import { layout as dagreLayout, graphlib } from "@dagrejs/dagre";
import type { Catalog } from "@/api/types";
import { inputPort } from "./canConnect";
import { portRef } from "./edges";
import { GRID, kindOf, NODE_WIDTH, nodeHeight } from "./geometry";
import type { Edge, LoopDocument, Point } from "./types";

const SPACE = { nodesep: 32, ranksep: 80, edgesep: 24 } as const;

/** New places for `ids` (all nodes by default); their common corner stays where it was. */
export function arrange(
  catalog: Catalog,
  document: LoopDocument,
  isLive: boolean,
  ids: readonly string[] = Object.keys(document.nodes),
): Record<string, Point> {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", ...SPACE, ranker: "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  const chosen = new Set(ids);
  for (const id of ids) {
    const kind = kindOf(catalog, document.nodes[id]?.kind);
    graph.setNode(id, { width: NODE_WIDTH, height: nodeHeight(kind, isLive) });
  }
  for (const edge of forwardEdges(catalog, document)) {
    const [from, to] = [portRef(edge.from).node, portRef(edge.to).node];
    if (from !== to && chosen.has(from) && chosen.has(to)) {
      graph.setEdge(from, to, { weight: 2 }, `${edge.from} ${edge.to}`);
    }
  }
  dagreLayout(graph);

  const places: Record<string, Point> = {};
  for (const id of ids) {
    const { x, y, width, height } = graph.node(id);
    places[id] = [(x ?? 0) - (width ?? 0) / 2, (y ?? 0) - (height ?? 0) / 2];
  }
  return moveTo(places, corner(document.layout, ids) ?? [0, 0]);
}

/** Edges along which data is made; those that close a circle by learning are left out. */
export function forwardEdges(catalog: Catalog, document: LoopDocument): Edge[] {
  const isLearning = (edge: Edge) =>
    inputPort(catalog, document, portRef(edge.to))?.phase === "learn";
  const making = document.edges.filter((edge) => !isLearning(edge) && edge.rounds === undefined);
  const next = new Map<string, string[]>();
  for (const edge of making) {
    const from = portRef(edge.from).node;
    next.set(from, [...(next.get(from) ?? []), portRef(edge.to).node]);
  }
  const reaches = (from: string, to: string) => {
    const seen = new Set([from]);
    const open = [from];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (id === to) return true;
      for (const child of next.get(id) ?? []) {
        if (seen.has(child)) continue;
        seen.add(child);
        open.push(child);
      }
    }
    return false;
  };
  const learning = document.edges.filter(
    (edge) => isLearning(edge) && !reaches(portRef(edge.to).node, portRef(edge.from).node),
  );
  return [...making, ...learning];
}

/**
 * Where each node is drawn: its own place, or one found for it. A loop that was written by hand and
 * places fewer than half of its nodes is laid out as a whole.
 */
export function placeNodes(
  catalog: Catalog,
  document: LoopDocument,
  isLive: boolean,
): Record<string, Point> {
  const ids = Object.keys(document.nodes);
  const missing = ids.filter((id) => !document.layout[id]);
  if (missing.length === 0) return document.layout;
  if (missing.length * 2 >= ids.length) return arrange(catalog, document, isLive);
  const placed = Object.values(document.layout);
  const bottom = Math.max(...placed.map(([, y]) => y));
  const left = Math.min(...placed.map(([x]) => x));
  const found = { ...document.layout };
  for (const [index, id] of missing.entries()) {
    found[id] = [left + index * (NODE_WIDTH + 40), bottom + 320];
  }
  return found;
}

/** The loop with a place for every node; what stood somewhere before stays there. */
export function withPlaces(
  catalog: Catalog,
  document: LoopDocument,
  isLive: boolean,
  before: Record<string, Point> = {},
): LoopDocument {
  const ids = Object.keys(document.nodes);
  const known = ids.filter((id) => document.layout[id] || before[id]);
  if (known.length === ids.length && ids.every((id) => document.layout[id])) return document;
  const kept = Object.fromEntries(
    known.map((id) => [id, document.layout[id] ?? before[id]]),
  ) as Record<string, Point>;
  const merged = { ...document, layout: kept };
  return { ...merged, layout: { ...placeNodes(catalog, merged, isLive) } };
}

function corner(layout: Record<string, Point>, ids: readonly string[]): Point | null {
  const points = ids.map((id) => layout[id]).filter((point): point is Point => point !== undefined);
  if (points.length === 0) return null;
  return [Math.min(...points.map(([x]) => x)), Math.min(...points.map(([, y]) => y))];
}

function moveTo(places: Record<string, Point>, [left, top]: Point): Record<string, Point> {
  const at = corner(places, Object.keys(places)) ?? [0, 0];
  const snap = (value: number) => Math.round(value / GRID) * GRID;
  return Object.fromEntries(
    Object.entries(places).map(([id, [x, y]]) => [
      id,
      [snap(x - at[0] + left), snap(y - at[1] + top)],
    ]),
  );
}
