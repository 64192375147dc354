import type { Catalog, KindInfo } from "@/api/types";
import { portRef } from "@/document/edges";
import { NOTE_SIZE } from "@/document/notes";
import { EMPTY_DOCUMENT, type LoopDocument, type NodeData, type Point } from "@/document/types";
import { boxesOf, GRID, NODE_WIDTH, nodeSize } from "./geometry";
import { freeBelow, moveTo } from "./layout";
import { areaOf, overlap, union } from "./shapes";

const GAP = 2 * GRID;
const BESIDE = 4 * GRID;
/** As far as a new box is put from where it was wanted, in steps of the grid. */
const MAX_RINGS = 200;
/** No node has this name, so that a new one can be measured under it. */
const NEW = "";
const STEP = 2 * GRID;
/** Boxes are wider than high, and rows flow from left to right: a place beside is as near as one below. */
const ACROSS = 3 * GRID;

export function freeOffset(
  catalog: Catalog,
  copies: Pick<LoopDocument, "nodes" | "edges" | "layout">,
  document: LoopDocument,
): Point {
  const present = boxesOf(catalog, document).map(areaOf);
  const moved = boxesOf(catalog, { ...EMPTY_DOCUMENT, ...copies });
  const collides = (by: number) =>
    moved
      .map((box) => areaOf({ ...box, x: box.x + by, y: box.y + by }))
      .some((area) => present.some((other) => overlap(area, other, GRID)));
  let by = STEP;
  while (collides(by)) by += STEP;
  return [by, by];
}

/** Places for the parts of a block as they stand to each other, at or below a wish, where they cover no other box. */
export function placeParts(
  catalog: Catalog,
  parts: Pick<LoopDocument, "nodes" | "edges" | "layout">,
  document: LoopDocument,
  wish: { x: number; y: number },
): Record<string, Point> {
  const present = boxesOf(catalog, document).map(areaOf);
  const layout = moveTo(parts.layout, [wish.x, wish.y]);
  const boxes = boxesOf(catalog, { ...EMPTY_DOCUMENT, ...parts, layout });
  const collides = (by: number) =>
    boxes
      .map((box) => areaOf({ ...box, y: box.y + by }))
      .some((area) => present.some((other) => overlap(area, other, GAP)));
  let by = 0;
  while (collides(by)) by += STEP;
  return Object.fromEntries(Object.entries(layout).map(([id, [x, y]]) => [id, [x, y + by]]));
}

/** Where a block goes that nobody pointed at a place for: right of what it is joined with, else of all; or around the middle. */
export function partsOnward(
  catalog: Catalog,
  parts: Pick<LoopDocument, "nodes" | "edges" | "layout">,
  document: LoopDocument,
  middle: { x: number; y: number },
  joined: readonly string[],
): { x: number; y: number } {
  const own = union(boxesOf(catalog, { ...EMPTY_DOCUMENT, ...parts }).map(areaOf));
  const [width, height] = [own.right - own.left, own.bottom - own.top];
  const boxes = boxesOf(catalog, document);
  if (boxes.length === 0) return { x: middle.x - width / 2, y: middle.y - height / 2 };
  const beside = boxes.filter(({ id }) => joined.includes(id));
  const around = union((beside.length > 0 ? beside : boxes).map(areaOf));
  return { x: around.right + BESIDE, y: (around.top + around.bottom - height) / 2 };
}

/** The place nearest to a wish at which a box of this kind covers no other; onward: to the right of it or below. */
export function freePlace(
  catalog: Catalog,
  document: LoopDocument,
  kind: KindInfo,
  wish: { x: number; y: number },
  isOnward = false,
): { x: number; y: number } {
  const begun = { ...document, nodes: { ...document.nodes, [NEW]: beginnings(kind) } };
  const { width, height } = nodeSize(catalog, begun, NEW);
  const taken = boxesOf(catalog, document).map(areaOf);
  const isFree = (x: number, y: number) =>
    !taken.some((area) => overlap(areaOf({ x, y, width, height }), area, GAP));
  const snap = (value: number) => Math.round(value / GRID) * GRID;
  const [left, top] = [snap(wish.x), snap(wish.y)];
  for (let ring = 0; ring <= MAX_RINGS; ring += 1) {
    const found = placesAt(ring)
      .filter(([across, down]) => !isOnward || (across >= 0 && down >= 0))
      .map(([across, down]) => ({ x: left + across * ACROSS, y: top + down * GRID }))
      .find(({ x, y }) => isFree(x, y));
    if (found) return found;
  }
  return { x: left, y: top };
}

/** A place for a node that was added without pointing at one: after the chosen node, or in the middle of the view. */
export function placeOnward(
  catalog: Catalog,
  document: LoopDocument,
  kind: KindInfo,
  middle: { x: number; y: number },
  chosen: string | undefined,
): { x: number; y: number } {
  const at = chosen === undefined ? undefined : document.layout[chosen];
  if (chosen === undefined || !at) return freePlace(catalog, document, kind, middle, true);
  const x = at[0] + nodeSize(catalog, document, chosen).width + BESIDE;
  return freePlace(catalog, document, kind, { x, y: at[1] }, true);
}

/** A place for a node that came with its edges: after what it reads, before what it gives to. */
export function placeBeside(catalog: Catalog, document: LoopDocument, id: string): Point | null {
  const kind = catalog.kinds[document.nodes[id]?.kind ?? ""];
  const ends = document.edges.map((edge) => ({
    from: portRef(edge.from).node,
    to: portRef(edge.to).node,
  }));
  const before = ends.find(({ from, to }) => to === id && document.layout[from])?.from;
  const after = ends.find(({ from, to }) => from === id && document.layout[to])?.to;
  const other = before ?? after;
  const at = other === undefined ? undefined : document.layout[other];
  if (!kind || other === undefined || !at) return null;
  const [x, y] = at;
  const away = before === undefined ? -NODE_WIDTH : nodeSize(catalog, document, other).width;
  const place = freePlace(catalog, document, kind, { x: x + away + Math.sign(away) * BESIDE, y });
  return [place.x, place.y];
}

function beginnings({ kind, template }: KindInfo): NodeData {
  return { ...template, kind } as NodeData;
}

/** Steps from the middle to the places of a square ring, the nearest first: right, below, left, above. */
function placesAt(ring: number): Point[] {
  const places: Point[] = [];
  for (let at = -ring; at <= ring; at += 1) {
    places.push([ring, at], [at, ring], [-ring, at], [at, -ring]);
  }
  return places.toSorted((a, b) => Math.hypot(...a) - Math.hypot(...b));
}

/** The first place at or below a wish at which a new note covers no box and no other note. */
export function freeNotePlace(catalog: Catalog, document: LoopDocument, [x, y]: Point): Point {
  const [width, height] = NOTE_SIZE;
  const notes = Object.values(document.notes ?? {}).map(({ at, size }) => ({
    x: at[0],
    y: at[1],
    width: size[0],
    height: size[1],
  }));
  const wish = { x, y: Math.round(y / GRID) * GRID, width, height };
  const top = freeBelow([...boxesOf(catalog, document), ...notes], wish, GRID, GRID);
  return [Math.round(x / GRID) * GRID, top];
}
