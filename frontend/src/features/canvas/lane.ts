/** Where a backward edge runs: below its two boxes and whatever stands between them. Pure. */
import type { Node } from "@xyflow/react";
import { NODE_WIDTH } from "./geometry";

const GAP = 22;
const REACH = 48;

/** Null where the edge goes forward. */
export function laneBelow(
  boxes: ReadonlyMap<string, Node>,
  source: string,
  target: string,
): number | null {
  const from = boxes.get(source);
  const to = boxes.get(target);
  if (!from || !to) return null;
  const right = from.position.x + NODE_WIDTH;
  const left = to.position.x;
  if (left >= right + 8) return null;
  const bottom = (box: Node) => box.position.y + (box.height ?? 0);
  const inside = [...boxes.values()]
    .filter((box) => box.position.x < right + REACH && box.position.x + NODE_WIDTH > left - REACH)
    .toSorted((a, b) => a.position.y - b.position.y);
  let lane = Math.max(bottom(from), bottom(to)) + GAP;
  // From the top down: a box that the lane would cross pushes it below.
  for (const box of inside) {
    if (box.position.y - GAP < lane && bottom(box) + GAP > lane) lane = bottom(box) + GAP;
  }
  return lane;
}
