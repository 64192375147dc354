/** Frames: each pool drawn round the nodes that name it, and which pool a moved node was put in. Pure. */
import type { Catalog } from "@/api/types";
import { isPoolClosed } from "@/document/groups";
import { type Pool, placeable, poolField, poolOf, poolsOf } from "@/document/pools";
import type { LoopDocument, Point } from "@/document/types";
import { mean } from "@/lib/statistics";
import { areaAround, boxesOf, GRID, isInside, middleOf } from "./geometry";
import { arrange, moveTo } from "./layout";
import { type Area, type Around, type Box, grown, overlap } from "./shapes";

export interface Frame extends Area {
  pool: Pool;
  members: readonly string[];
}

/** Less than boxes of a column have between them. */
const AROUND: Around = { side: 14, top: 34, bottom: 10 };
/** A pool without nodes waits beside the graph, where no lines run. */
const EMPTY = { width: 304, height: 120, gap: 32 } as const;

export function framesOf(
  catalog: Catalog,
  document: LoopDocument,
  boxes: readonly Box[],
  around: Around = AROUND,
): Frame[] {
  const pools = poolsOf(document).filter(({ name }) => !isPoolClosed(document, name));
  if (pools.length === 0) return [];
  const found: Frame[] = [];
  const empty: Pool[] = [];
  for (const pool of pools) {
    const own = boxes.filter(({ id }) => poolOf(catalog, document, id) === pool.name);
    const area = areaAround(own);
    if (area) found.push({ pool, members: own.map(({ id }) => id), ...grown(area, around) });
    else empty.push(pool);
  }
  return [...found, ...waiting(empty, areaAround(boxes), found)];
}

/** While boxes are dragged: a frame goes with all of its nodes where these are several, else it stays. */
export function framesWhile(
  catalog: Catalog,
  document: LoopDocument,
  before: readonly Box[],
  after: readonly Box[],
  moved: ReadonlySet<string>,
  around: Around = AROUND,
): Frame[] {
  const frames = framesOf(catalog, document, before, around);
  if (moved.size === 0) return frames;
  return frames.map((frame) => {
    const area = goesAlong(frame, moved)
      ? areaAround(after.filter(({ id }) => frame.members.includes(id)))
      : null;
    return area ? { ...frame, ...grown(area, around) } : frame;
  });
}

/** A node that is dragged alone leaves its frame behind, even where it is the only one in it: so it can be taken out. */
function goesAlong({ members }: Frame, moved: ReadonlySet<string>): boolean {
  return moved.size > 1 && members.length > 0 && members.every((id) => moved.has(id));
}

function waiting(pools: readonly Pool[], area: Area | null, frames: readonly Frame[]): Frame[] {
  const right = Math.max(area?.right ?? 0, ...frames.map((frame) => frame.right));
  const left = right + 2 * EMPTY.gap;
  return pools.map((pool, place) => {
    const top = (area?.top ?? 0) + place * (EMPTY.height + EMPTY.gap);
    const bottom = top + EMPTY.height;
    return { pool, members: [], left, top, right: left + EMPTY.width, bottom };
  });
}

export interface Placing {
  nodes: string[];
  pool: string | null;
}

/**
 * What a move means for pools: into the smallest frame under the middle of the first box, or out of its own; null where it
 * means nothing. A move within a frame, or with it, means nothing.
 */
export function placingOf(
  catalog: Catalog,
  document: LoopDocument,
  before: readonly Box[],
  after: readonly Box[],
  moved: readonly string[],
): Placing | null {
  const nodes = placeable(catalog, document, moved);
  const [first] = nodes;
  if (first === undefined) return null;
  const going = new Set(moved);
  const frames = framesOf(catalog, document, before).filter((frame) => !goesAlong(frame, going));
  const start = under(frames, before, first);
  const own = poolOf(catalog, document, first);
  const end = under(frames, after, first) ?? touched(frames, after, first, own);
  if (end === start || end === own) return null;
  if (end !== null) return { nodes, pool: end };
  return frames.some(({ pool }) => pool.name === own) ? { nodes, pool: null } : null;
}

/** The pool in whose frame a new node of this kind would stand; null where it can be in none. */
export function poolAt(
  catalog: Catalog,
  document: LoopDocument,
  boxes: readonly Box[],
  kind: string,
  { x, y }: { x: number; y: number },
): string | null {
  if (poolField(catalog, kind) === null) return null;
  return smallestAt(framesOf(catalog, document, boxes), [x, y]);
}

/** The frame is as narrow as the only box in it, which is in it as long as the two overlap. */
function touched(
  frames: readonly Frame[],
  boxes: readonly Box[],
  id: string,
  own: string | null,
): string | null {
  const frame = frames.find(({ pool, members }) => pool.name === own && members.length === 1);
  const box = areaAround(boxes.filter((one) => one.id === id));
  if (!frame || !box) return null;
  return overlap(box, frame, 1) ? own : null;
}

function under(frames: readonly Frame[], boxes: readonly Box[], id: string): string | null {
  const box = boxes.find((one) => one.id === id);
  return box ? smallestAt(frames, middleOf(box)) : null;
}

function smallestAt(frames: readonly Frame[], point: Point): string | null {
  const size = ({ left, right, top, bottom }: Area) => (right - left) * (bottom - top);
  const over = frames
    .filter((frame) => isInside(frame, point))
    .toSorted((a, b) => size(a) - size(b));
  return over[0]?.pool.name ?? null;
}

// The graph laid out pool by pool, so that no frame has a node of another pool in it. Pure.

const APART = 3 * GRID;

/**
 * Places for all nodes: the nodes of no pool, then each pool, in the order in which rows reach
 * them, one below the other. The common corner stays where it was.
 */
export function arrangePools(catalog: Catalog, document: LoopDocument): Record<string, Point> {
  const whole = arrange(catalog, document);
  const ids = Object.keys(document.nodes);
  const corner = areaAround(boxesOf(catalog, { ...document, layout: whole }));
  if (!corner) return whole;
  const places: Record<string, Point> = {};
  let top = corner.top;
  for (const name of [null, ...poolsOf(document).map((pool) => pool.name)].toSorted(byFlow())) {
    const own = ids.filter((id) => namedPool(id) === name);
    if (own.length === 0) continue;
    const layout = arrange(catalog, { ...document, layout: whole }, own);
    const block = framed({ ...document, layout }, name, own);
    if (!block) continue;
    const down = Math.ceil((top - block.top) / GRID) * GRID;
    const across = Math.round((corner.left - block.left) / GRID) * GRID;
    for (const id of own) {
      const [x, y] = layout[id] ?? [0, 0];
      places[id] = [x + across, y + down];
    }
    top = block.bottom + down + APART;
  }
  return moveTo(places, [corner.left, corner.top]);

  function namedPool(id: string): string | null {
    const name = poolOf(catalog, document, id);
    return poolsOf(document).some((pool) => pool.name === name) ? name : null;
  }

  function framed(placed: LoopDocument, name: string | null, own: readonly string[]) {
    const boxes = boxesOf(catalog, placed, own);
    return (
      framesOf(catalog, placed, boxes).find(({ pool }) => pool.name === name) ?? areaAround(boxes)
    );
  }

  function byFlow() {
    const reached = (name: string | null) => {
      const across = ids.filter((id) => namedPool(id) === name).map((id) => whole[id]?.[0] ?? 0);
      return mean(across) ?? 0;
    };
    return (a: string | null, b: string | null) =>
      a === null ? -1 : b === null ? 1 : reached(a) - reached(b);
  }
}
