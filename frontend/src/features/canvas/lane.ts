/** Where backward edges run: below their two boxes and whatever stands between them. Pure. */
import type { Node } from "@xyflow/react";
import { NODE_WIDTH } from "@/document/geometry";

const GAP = 22;
const REACH = 48;

export interface Lanes {
  /** Height of the lane between two nodes; null where the edge goes forward. */
  below: (source: string, target: string) => number | null;
}

export function createLanes(nodes: readonly Node[]): Lanes {
  const boxes = new Map(nodes.map((node) => [node.id, node]));
  const bottom = (box: Node) => box.position.y + (box.height ?? 0);
  let sorted: Node[] | null = null;
  return {
    below: (source, target) => {
      const from = boxes.get(source);
      const to = boxes.get(target);
      if (!from || !to) return null;
      const right = from.position.x + NODE_WIDTH;
      const left = to.position.x;
      if (left >= right + 8) return null;
      sorted ??= nodes.toSorted((a, b) => a.position.y - b.position.y);
      let lane = Math.max(bottom(from), bottom(to)) + GAP;
      // From the top down: a box that the lane would cross pushes it below.
      for (const box of sorted) {
        const { x, y } = box.position;
        if (x >= right + REACH || x + NODE_WIDTH <= left - REACH) continue;
        if (y - GAP < lane && bottom(box) + GAP > lane) lane = bottom(box) + GAP;
      }
      return lane;
    },
  };
}
