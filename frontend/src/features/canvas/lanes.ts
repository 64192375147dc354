/**
 * Where backward edges run: below their boxes and whatever stands between them, or in the free stripe between
 * two rows. Each has a track of its own, so that no two run over each other. Pure.
 */
import { NODE_WIDTH } from "@/document/geometry";

export interface RouteBox {
  id: string;
  x: number;
  y: number;
  height: number;
}

export interface Lane {
  /** Height of the long way. */
  y: number;
  /** How far the line goes out of its source and in front of its target. */
  out: number;
  into: number;
}

/** Room between a box and the nearest track, and between two tracks. */
const GAP = 24;
const TRACK = 24;
/** How far the nearest line goes past a port, and each further one more. */
const REACH = 24;
const BESIDE = 8;
const MOST_BESIDE = 5;

interface Way {
  key: string;
  from: RouteBox;
  to: RouteBox;
}

export function isBackward(from: RouteBox, to: RouteBox): boolean {
  return to.x < from.x + NODE_WIDTH + 8;
}

/** A lane for every way; shorter ways run further up. */
export function planLanes(boxes: readonly RouteBox[], ways: readonly Way[]): Map<string, Lane> {
  const byTop = boxes.toSorted((a, b) => a.y - b.y);
  const wanted = ways
    .map((way) => ({ way, y: belowBoxes(byTop, way, firstLane(way)) }))
    .toSorted((a, b) => a.y - b.y || span(a.way) - span(b.way));
  const lanes = new Map<string, Lane>();
  const taken: { y: number; left: number; right: number }[] = [];
  const leaving = new Map<number, number>();
  const coming = new Map<number, number>();
  for (const { way, y: first } of wanted) {
    const [left, right] = [way.to.x - REACH, way.from.x + NODE_WIDTH + REACH];
    const isTaken = (y: number) =>
      taken.some((one) => one.left < right && left < one.right && Math.abs(one.y - y) < TRACK);
    let y = first;
    while (isTaken(y)) y = belowBoxes(byTop, way, y + TRACK);
    taken.push({ y, left, right });
    const out = REACH + BESIDE * next(leaving, way.from.x);
    lanes.set(way.key, { y, out, into: REACH + BESIDE * next(coming, way.to.x) });
  }
  return lanes;
}

function span({ from, to }: Way): number {
  return from.x - to.x;
}

function next(counts: Map<number, number>, column: number): number {
  const count = counts.get(column) ?? 0;
  counts.set(column, count + 1);
  return count % MOST_BESIDE;
}

/** Boxes in two rows leave a stripe between them; boxes beside each other are passed below. */
function firstLane({ from, to }: Way): number {
  const [upper, lower] = from.y <= to.y ? [from, to] : [to, from];
  const bottom = upper.y + upper.height;
  if (lower.y - bottom >= 2 * GAP) return bottom + GAP;
  return Math.max(bottom, lower.y + lower.height) + GAP;
}

/** From the top down: a box that the lane would cross pushes it below. */
function belowBoxes(byTop: readonly RouteBox[], { from, to }: Way, wish: number): number {
  let lane = wish;
  for (const box of byTop) {
    if (box.x >= from.x + NODE_WIDTH + 2 * REACH || box.x + NODE_WIDTH <= to.x - 2 * REACH)
      continue;
    const bottom = box.y + box.height;
    if (box.y - GAP < lane && bottom + GAP > lane) lane = bottom + GAP;
  }
  return lane;
}
