/** A place near a wish where no other box begins. Pure. */
import type { LoopDocument, Point } from "@/document/types";
import { GRID } from "./geometry";

const CLEARANCE = 40;

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
