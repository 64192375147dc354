/**
 * Automatic layout from left to right, in the direction of the data.
 * Edges that only carry learning back to where the data came from do not pull boxes around.
 */
import { layout as dagreLayout, graphlib } from "@dagrejs/dagre";
import type { Catalog } from "@/api/types";
import { inputPort } from "./canConnect";
import { portRef } from "./edges";
import { edgeText } from "./edgeText";
import { GRID, NODE_WIDTH, nodeHeight } from "./geometry";
import type { Edge, LoopDocument, Point } from "./types";

const SPACE = { nodesep: 32, edgesep: 16 } as const;
/** Room between two ranks: for lines alone, and at most for what stands on them. */
const RANK_GAP = { least: 72, most: 184 } as const;
/** Of a text at its largest, and what is around it. */
const CHARACTER = 9.8;
const AROUND = 42;
/** A rate stands on every line of a run. */
const RATE_CHARACTERS = 7;
/** Room for the lanes between two rows of ranks. */
const ROW_GAP = 88;

interface Size {
  width: number;
  height: number;
}

/** What a graph is to fit into: the canvas of an ordinary window, on either page. */
const COMPOSER: Size = { width: 880, height: 560 };
const RUN: Size = { width: 1360, height: 420 };
/** A graph that is drawn as large as this in one row stays in it. */
const LARGE_ENOUGH = 0.8;
/** Boxes that stand on each other are moved this far apart. */
const APART = 24;

/** New places for `ids` (all nodes by default); their common corner stays where it was. */
export function arrange(
  catalog: Catalog,
  document: LoopDocument,
  isLive: boolean,
  ids: readonly string[] = Object.keys(document.nodes),
): Record<string, Point> {
  const ranksep = rankGap(catalog, document.edges, isLive);
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", ...SPACE, ranksep, ranker: "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  const chosen = new Set(ids);
  for (const id of ids) {
    graph.setNode(id, { width: NODE_WIDTH, height: nodeHeight(catalog, document, id, isLive) });
  }
  for (const edge of forwardEdges(catalog, document)) {
    const [from, to] = [portRef(edge.from).node, portRef(edge.to).node];
    if (from !== to && chosen.has(from) && chosen.has(to)) {
      graph.setEdge(from, to, { weight: 2 }, `${edge.from} ${edge.to}`);
    }
  }
  dagreLayout(graph);

  const boxes = ids.map((id): Box => {
    const { x, y, width, height } = graph.node(id);
    const [w, h] = [width ?? 0, height ?? 0];
    return { id, x: (x ?? 0) - w / 2, y: (y ?? 0) - h / 2, height: h };
  });
  return moveTo(
    wrapped(boxes, ranksep, isLive ? RUN : COMPOSER),
    corner(document.layout, ids) ?? [0, 0],
  );
}

interface Box {
  id: string;
  x: number;
  y: number;
  height: number;
}

/** Between two ranks stands the longest text of an edge. */
function rankGap(catalog: Catalog, edges: readonly Edge[], isLive: boolean): number {
  const longest = Math.max(0, ...edges.map((edge) => edgeText(catalog, edge).length));
  const characters = longest + (isLive ? RATE_CHARACTERS + (longest > 0 ? 3 : 0) : 0);
  const wish = characters === 0 ? 0 : characters * CHARACTER + AROUND;
  return Math.min(RANK_GAP.most, Math.max(RANK_GAP.least, wish));
}

/** Long chains go on in a new row, as text does: in as many rows as make the graph largest on a screen. */
function wrapped(boxes: readonly Box[], gap: number, window: Size): Record<string, Point> {
  const columns = [...new Set(boxes.map((box) => Math.round(box.x)))].toSorted((a, b) => a - b);
  let best = inRows(boxes, columns, 1, gap, window);
  if (best.zoom >= LARGE_ENOUGH) return best.places;
  for (let rows = 2; rows <= Math.ceil(columns.length / 2); rows += 1) {
    const next = inRows(boxes, columns, rows, gap, window);
    if (next.zoom > best.zoom * 1.1) best = next;
  }
  return best.places;
}

function inRows(
  boxes: readonly Box[],
  columns: readonly number[],
  rows: number,
  gap: number,
  window: Size,
) {
  const each = Math.ceil(columns.length / rows);
  const places: Record<string, Point> = {};
  let top = 0;
  let width = 0;
  for (let first = 0; first < columns.length; first += each) {
    const own = columns.slice(first, first + each);
    const inRow = boxes.filter((box) => own.includes(Math.round(box.x)));
    const above = Math.min(...inRow.map((box) => box.y));
    for (const box of inRow) {
      const column = own.indexOf(Math.round(box.x));
      places[box.id] = [column * (NODE_WIDTH + gap), top + box.y - above];
    }
    top += Math.max(...inRow.map((box) => box.y - above + box.height)) + ROW_GAP;
    width = Math.max(width, own.length * (NODE_WIDTH + gap) - gap);
  }
  const zoom = Math.min(1, window.width / width, window.height / (top - ROW_GAP));
  return { places, zoom };
}

/** The same places, boxes that would stand on each other moved down until they do not. */
export function spread(
  layout: Readonly<Record<string, Point>>,
  heightOf: (id: string) => number,
): Record<string, Point> {
  const ids = Object.keys(layout).toSorted((a, b) => {
    const [[ax, ay], [bx, by]] = [layout[a] as Point, layout[b] as Point];
    return ay - by || ax - bx;
  });
  const placed: Box[] = [];
  let isMoved = false;
  for (const id of ids) {
    const [x, wish] = layout[id] as Point;
    const height = heightOf(id);
    const beside = placed.filter((box) => Math.abs(box.x - x) < NODE_WIDTH + GRID);
    let y = wish;
    for (let other = firstOn(beside, y, height); other; other = firstOn(beside, y, height)) {
      y = Math.ceil((other.y + other.height + APART) / GRID) * GRID;
      isMoved = true;
    }
    placed.push({ id, x, y, height });
  }
  if (!isMoved) return layout as Record<string, Point>;
  return Object.fromEntries(placed.map(({ id, x, y }) => [id, [x, y] as Point]));
}

function firstOn(boxes: readonly Box[], y: number, height: number): Box | undefined {
  return boxes.find((box) => y < box.y + box.height + GRID / 2 && box.y < y + height + GRID / 2);
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
 * Where each node is drawn: its own place, or one found for it; never two on one spot. A loop that was
 * written by hand and places fewer than half of its nodes is laid out as a whole.
 */
export function placeNodes(
  catalog: Catalog,
  document: LoopDocument,
  isLive: boolean,
): Record<string, Point> {
  const ids = Object.keys(document.nodes);
  const missing = ids.filter((id) => !document.layout[id]);
  if (missing.length > 0 && missing.length * 2 >= ids.length)
    return arrange(catalog, document, isLive);
  const heightOf = (id: string) => nodeHeight(catalog, document, id, isLive);
  return spread(missing.length === 0 ? document.layout : withFound(document, missing), heightOf);
}

/** Nodes without a place go below all others, side by side. */
function withFound(document: LoopDocument, missing: readonly string[]): Record<string, Point> {
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
