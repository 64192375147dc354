/**
 * Automatic layout from left to right, in the direction of the data.
 * Edges that only carry learning back to where the data came from do not pull boxes around.
 */
import { graphlib, layout as rank } from "@dagrejs/dagre";
import type { Catalog } from "@/api/types";
import { inputPort } from "@/document/canConnect";
import { portRef } from "@/document/edges";
import type { Edge, LoopDocument, Point } from "@/document/types";
import { reachable } from "@/lib/reachable";
import { mean } from "@/lib/statistics";
import { edgeKinds, edgeText, isSided } from "./edgeKinds";
import { foldOf } from "./folding";
import { GRID, NODE_WIDTH, nodeSize, type Size, textWidth } from "./geometry";
import { RATE } from "./labels";
import type { Box } from "./shapes";

/** Room between two boxes of a rank, and between two ranks: for lines alone, and at most for what stands on them. */
const NODE_GAP = 48;
const RANK_GAP = { least: 80, most: 160 } as const;
const DOCK_GAP = 48;

const AROUND = 44;
const APART = 24;

function isMostlyUnplaced({ nodes, layout }: LoopDocument): boolean {
  const ids = Object.keys(nodes);
  const missing = ids.filter((id) => !layout[id]);
  return missing.length > 0 && missing.length * 2 >= ids.length;
}

interface Group {
  id: string;
  width: number;
  height: number;
  places: Record<string, Point>;
}

/** New places for `ids` (all nodes by default); their common corner stays where it was. */
export function arrange(
  catalog: Catalog,
  document: LoopDocument,
  ids: readonly string[] = Object.keys(document.nodes),
): Record<string, Point> {
  const ranksep = rankGap(catalog, document);
  const groups = groupsOf(catalog, document, ids);
  const home = new Map(
    [...groups.values()].flatMap((group) =>
      Object.keys(group.places).map((id) => [id, group.id] as const),
    ),
  );
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({
    rankdir: "LR",
    nodesep: NODE_GAP,
    edgesep: 16,
    ranksep,
    ranker: "network-simplex",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of groups.values()) graph.setNode(id, { width, height });
  const links: Link[] = [];
  for (const edge of forwardEdges(catalog, document)) {
    const from = home.get(portRef(edge.from).node);
    const to = home.get(portRef(edge.to).node);
    if (from === undefined || to === undefined || from === to) continue;
    graph.setEdge(from, to, { weight: 2 }, `${edge.from} ${edge.to}`);
    links.push([from, to]);
  }
  rank(graph);
  const drawn = [...groups.values()].map((group) => {
    const { x, y } = graph.node(group.id);
    return { group, x: Math.round(x ?? 0), y: (y ?? 0) - group.height / 2 };
  });
  return moveTo(inRanks(drawn, links, ranksep), corner(document.layout, ids) ?? [0, 0]);
}

function groupsOf(
  catalog: Catalog,
  document: LoopDocument,
  ids: readonly string[],
): Map<string, Group> {
  const { leaderOf } = edgeKinds(catalog, document);
  const chosen = new Set(ids);
  const groups = new Map<string, Group>();
  const { cards, cardOf } = foldOf(catalog, document);
  for (const { id, members, width, height } of cards) {
    const own = members.filter((member) => chosen.has(member));
    if (own.length > 0) groups.set(id, { id, width, height, places: inside(document, own) });
  }
  for (const id of ids) {
    if (cardOf.has(id)) continue;
    const leader = leaderOf.get(id) ?? "";
    if (chosen.has(leader) && !cardOf.has(leader)) continue;
    const own = nodeSize(catalog, document, id);
    const group: Group = { id, ...own, places: { [id]: [0, 0] } };
    const follower = ids.find((one) => leaderOf.get(one) === id && !cardOf.has(one));
    if (follower !== undefined) {
      const { width, height } = nodeSize(catalog, document, follower);
      group.places[follower] = [0, own.height + DOCK_GAP];
      group.width = Math.max(own.width, width);
      group.height = own.height + DOCK_GAP + height;
    }
    groups.set(id, group);
  }
  return groups;
}

/** Where nodes of a closed group stand to each other. */
function inside({ layout }: LoopDocument, ids: readonly string[]): Record<string, Point> {
  const [left, top] = corner(layout, ids) ?? [0, 0];
  return Object.fromEntries(
    ids.map((id) => {
      const [x, y] = layout[id] ?? [left, top];
      return [id, [x - left, y - top] as Point];
    }),
  );
}

/** Ranks side by side, in one row or two; boxes of a rank below each other, near to what they are joined with. */
function inRanks(
  drawn: readonly { group: Group; x: number; y: number }[],
  links: readonly Link[],
  gap: number,
): Record<string, Point> {
  const middles = [...new Set(drawn.map(({ x }) => x))].toSorted((a, b) => a - b);
  const ranks = middles.map((middle) =>
    drawn
      .filter(({ x }) => x === middle)
      .toSorted((a, b) => a.y - b.y)
      .map(({ group }) => group),
  );
  const row = rowOf(ranks, links, gap);
  let best = { fit: WORTH * fitOf(row.width, row.height), rows: [row] };
  for (let cut = MIN_RANKS; cut <= ranks.length - MIN_RANKS; cut += 1) {
    const rows = [ranks.slice(0, cut), ranks.slice(cut)].map((part) => rowOf(part, links, gap));
    const first = new Set(
      ranks
        .slice(0, cut)
        .flat()
        .map(({ id }) => id),
    );
    const torn = new Set(
      links.filter(([from, to]) => first.has(from) !== first.has(to)).map(([from]) => from),
    ).size;
    const height = rows.reduce((sum, one) => sum + one.height, ROW_GAP);
    const fit = fitOf(Math.max(...rows.map(({ width }) => width)), height) * TORN ** torn;
    if (fit > best.fit) best = { fit, rows };
  }
  const places: Record<string, Point> = {};
  let top = 0;
  for (const { places: own, height } of best.rows) {
    for (const [id, [x, y]] of Object.entries(own)) places[id] = [x, y + top];
    top += Math.ceil((height + ROW_GAP) / GRID) * GRID;
  }
  return places;
}

/** Windows are wider than high, and below the graph lies the lane of learning. */
const PROPORTION = 1.9;
/** By how much larger a graph is drawn in two rows before it is broken, and how much less with each node whose lines go
 * from one to the other. */
const WORTH = 1.25;
const TORN = 0.92;
/** A row has as many ranks at least. */
const MIN_RANKS = 3;
/** Between two rows, for the lines that go from one to the other. */
const ROW_GAP = 128;

/** How large an area is drawn where all of it is to be seen. */
function fitOf(width: number, height: number): number {
  return Math.min(PROPORTION / width, 1 / height);
}

interface Row {
  places: Record<string, Point>;
  width: number;
  height: number;
}

/** From the left, each rank as wide as its widest box; the highest box at 0. */
function rowOf(ranks: readonly (readonly Group[])[], links: readonly Link[], gap: number): Row {
  const tops = levelled(ranks, links);
  const highest = Math.min(...tops.values());
  const places: Record<string, Point> = {};
  let left = 0;
  let height = 0;
  for (const rank of ranks) {
    for (const group of rank) {
      const top = (tops.get(group.id) ?? 0) - highest;
      height = Math.max(height, top + group.height);
      for (const [id, [across, down]] of Object.entries(group.places)) {
        places[id] = [left + across, top + down];
      }
    }
    left += Math.ceil((Math.max(...rank.map(({ width }) => width)) + gap) / GRID) * GRID;
  }
  return { places, width: left - gap, height };
}

type Link = readonly [string, string];

const SWEEPS = 8;

/** The tops of all groups: from rank to rank each goes to the middle of those that it is joined with, in its order. */
function levelled(
  ranks: readonly (readonly Group[])[],
  links: readonly Link[],
): Map<string, number> {
  const tops = new Map<string, number>();
  for (const rank of ranks) {
    const whole = rank.reduce((sum, { height }) => sum + height + NODE_GAP, -NODE_GAP);
    let top = -whole / 2;
    for (const { id, height } of rank) {
      tops.set(id, top);
      top += height + NODE_GAP;
    }
  }
  const partners = new Map<string, string[]>();
  for (const [from, to] of links) {
    if (!tops.has(from) || !tops.has(to)) continue;
    partners.set(from, [...(partners.get(from) ?? []), to]);
    partners.set(to, [...(partners.get(to) ?? []), from]);
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const rank of sweep % 2 === 0 ? ranks : ranks.toReversed()) {
      const wishes = rank.map(({ id }) => {
        const near = (partners.get(id) ?? []).map((other) => tops.get(other) ?? 0);
        return mean(near) ?? tops.get(id) ?? 0;
      });
      for (const [index, top] of apart(wishes, rank).entries())
        tops.set(rank[index]?.id ?? "", top);
    }
  }
  for (const rank of ranks) {
    let free = Number.NEGATIVE_INFINITY;
    for (const { id, height } of rank) {
      const top = Math.max(free, Math.round((tops.get(id) ?? 0) / GRID) * GRID);
      tops.set(id, top);
      free = Math.ceil((top + height + NODE_GAP - GRID / 2) / GRID) * GRID;
    }
  }
  return tops;
}

/** As near to their wishes as they can all be, one below the other: those in conflict share their mean. */
function apart(wishes: readonly number[], rank: readonly Group[]): number[] {
  const before: number[] = [];
  let sum = 0;
  for (const { height } of rank) {
    before.push(sum);
    sum += height + NODE_GAP;
  }
  const blocks: { mean: number; count: number }[] = [];
  for (const [index, wish] of wishes.entries()) {
    let block = { mean: wish - (before[index] ?? 0), count: 1 };
    for (let last = blocks.at(-1); last && last.mean > block.mean; last = blocks.at(-1)) {
      blocks.pop();
      const count = last.count + block.count;
      block = { mean: (last.mean * last.count + block.mean * block.count) / count, count };
    }
    blocks.push(block);
  }
  const flat = blocks.flatMap(({ mean: value, count }) => Array<number>(count).fill(value));
  return flat.map((value, index) => value + (before[index] ?? 0));
}

function rankGap(catalog: Catalog, document: LoopDocument): number {
  const texts = edgeKinds(catalog, document)
    .edges.filter(({ kind }) => isSided(kind))
    .map(({ edge }) => edgeText(catalog, edge));
  const wish = Math.max(...[...texts, RATE].map((text) => textWidth(text, 12))) + AROUND;
  return Math.min(RANK_GAP.most, Math.max(RANK_GAP.least, wish));
}

export function spread(
  layout: Readonly<Record<string, Point>>,
  sizeOf: (id: string) => Size,
): Record<string, Point> {
  const ids = Object.keys(layout).toSorted((a, b) => {
    const [[ax, ay], [bx, by]] = [layout[a] as Point, layout[b] as Point];
    return ay - by || ax - bx;
  });
  const placed: Box[] = [];
  let isMoved = false;
  for (const id of ids) {
    const [x, wish] = layout[id] as Point;
    const box = { id, x, y: wish, ...sizeOf(id) };
    const y = freeBelow(placed, box, GRID / 2, APART);
    isMoved ||= y !== wish;
    placed.push({ ...box, y });
  }
  if (!isMoved) return layout as Record<string, Point>;
  return Object.fromEntries(placed.map(({ id, x, y }) => [id, [x, y] as Point]));
}

type Rectangle = Omit<Box, "id">;

/** The first height at or below its own at which a box is free of others, `apart` from those that it gave way to. */
export function freeBelow(
  taken: readonly Rectangle[],
  { x, y, width, height }: Rectangle,
  near: number,
  apart: number,
): number {
  const beside = taken.filter((box) => x < box.x + box.width + GRID && box.x < x + width + GRID);
  const at = (top: number) =>
    beside.find((box) => top < box.y + box.height + near && box.y < top + height + near);
  let top = y;
  for (let box = at(top); box; box = at(top)) {
    top = Math.ceil((box.y + box.height + apart) / GRID) * GRID;
  }
  return top;
}

export function forwardEdges(catalog: Catalog, document: LoopDocument): Edge[] {
  const isLearning = (edge: Edge) =>
    inputPort(catalog, document, portRef(edge.to))?.phase === "learn";
  const making = document.edges.filter((edge) => !isLearning(edge) && edge.rounds === undefined);
  const links = making.map(({ from, to }) => [portRef(from).node, portRef(to).node] as const);
  const learning = document.edges.filter(
    (edge) =>
      isLearning(edge) && !reachable(links, portRef(edge.to).node).has(portRef(edge.from).node),
  );
  return [...making, ...learning];
}

/**
 * Where each node is drawn: its own place, or one found for it; never two on one spot. Closed groups have the place of
 * their card by its name. A loop that was written by hand and places fewer than half of its nodes is laid out as a whole.
 */
export function placeNodes(catalog: Catalog, document: LoopDocument): Record<string, Point> {
  const ids = Object.keys(document.nodes);
  const missing = ids.filter((id) => !document.layout[id]);
  if (isMostlyUnplaced(document)) {
    const layout = arrange(catalog, document);
    return document.groups ? placeNodes(catalog, { ...document, layout }) : layout;
  }
  const places = missing.length === 0 ? document.layout : withFound(document, missing);
  const { cards, cardOf } = foldOf(catalog, document);
  if (cards.length === 0) return spread(places, (id) => nodeSize(catalog, document, id));
  const byId = new Map(cards.map((card) => [card.id, card]));
  const shown = Object.entries(places).filter(([id]) => !cardOf.has(id));
  for (const { id, members } of cards) shown.push([id, corner(places, members) ?? [0, 0]]);
  const sizeOf = (id: string) => byId.get(id) ?? nodeSize(catalog, document, id);
  return { ...places, ...spread(Object.fromEntries(shown), sizeOf) };
}

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
  before: Record<string, Point> = {},
): LoopDocument {
  const ids = Object.keys(document.nodes);
  const known = ids.filter((id) => document.layout[id] || before[id]);
  if (known.length === ids.length && ids.every((id) => document.layout[id])) return document;
  const kept = Object.fromEntries(
    known.map((id) => [id, document.layout[id] ?? before[id]]),
  ) as Record<string, Point>;
  const merged = { ...document, layout: kept };
  const places = Object.entries(placeNodes(catalog, merged)).filter(([id]) => id in document.nodes);
  return { ...merged, layout: Object.fromEntries(places) };
}

function corner(layout: Record<string, Point>, ids: readonly string[]): Point | null {
  const points = ids.map((id) => layout[id]).filter((point): point is Point => point !== undefined);
  if (points.length === 0) return null;
  return [Math.min(...points.map(([x]) => x)), Math.min(...points.map(([, y]) => y))];
}

/** The places, with their common corner at a point, on the grid. */
export function moveTo(places: Record<string, Point>, [left, top]: Point): Record<string, Point> {
  const at = corner(places, Object.keys(places)) ?? [0, 0];
  const snap = (value: number) => Math.round(value / GRID) * GRID;
  return Object.fromEntries(
    Object.entries(places).map(([id, [x, y]]) => [
      id,
      [snap(x - at[0] + left), snap(y - at[1] + top)],
    ]),
  );
}
