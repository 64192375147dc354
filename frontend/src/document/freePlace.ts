/** Places where no other box begins. Pure. */

import { GRID } from "./geometry";
import type { LoopDocument, Point } from "./types";

const CLEARANCE = 40;
const STEP = 2 * GRID;

type Layout = Readonly<Record<string, Point>>;

/** How far copies move so that none lies on a box that is there already. */
export function freeOffset(copies: Layout, present: Layout): Point {
  const taken = Object.values(present);
  const collides = (by: number) =>
    Object.values(copies).some(([x, y]) =>
      taken.some(([left, top]) => Math.abs(x + by - left) < GRID && Math.abs(y + by - top) < GRID),
    );
  let by = STEP;
  while (collides(by)) by += STEP;
  return [by, by];
}

/** The place nearest to a wish, to its lower right. */
export function freePlace(
  document: LoopDocument,
  wish: { x: number; y: number },
): { x: number; y: number } {
  const taken: Point[] = Object.values(document.layout);
  let { x, y } = wish;
  while (
    taken.some(([left, top]) => Math.abs(left - x) < CLEARANCE && Math.abs(top - y) < CLEARANCE)
  ) {
    x += 2 * GRID;
    y += 3 * GRID;
  }
  return { x: Math.round(x / GRID) * GRID, y: Math.round(y / GRID) * GRID };
}
