/** Arranged loops fill a window: what would be one long row is two, below each other, in the order of the data. */
import { describe, expect, it } from "vitest";
import type { LoopDocument, NodeData } from "@/document/types";
import { boxesOf } from "@/graph/geometry";
import { arrange } from "@/graph/layout";
import { catalog, smallLoop } from "../fixtures/loops";

/** Actors one after the other, each writing about what the one before wrote. */
function chain(length: number): LoopDocument {
  const ids = Array.from({ length }, (_, index) => `writer_${index}`);
  const nodes: Record<string, NodeData> = {
    problems: { kind: "dataset", source: { type: "task", task: "arithmetic" } },
  };
  for (const id of ids) nodes[id] = { kind: "actor" };
  const edges = ids.map((id, index) => ({
    from: index === 0 ? "problems.rows" : `writer_${index - 1}.rollouts`,
    to: `${id}.prompts`,
  }));
  return { ...smallLoop(), nodes, edges, layout: {} };
}

function arranged(document: LoopDocument) {
  const boxes = boxesOf(catalog, { ...document, layout: arrange(catalog, document) });
  const left = Math.min(...boxes.map(({ x }) => x));
  const width = Math.max(...boxes.map((box) => box.x + box.width)) - left;
  return { boxes, left, width };
}

describe("arrange", () => {
  it("leaves a loop of a few nodes in one row", () => {
    const { boxes } = arranged(chain(4));

    const ends = boxes.flatMap((box) => [box.x, box.x + box.width]);
    expect(ends).toEqual(ends.toSorted((a, b) => a - b));
  });

  it("breaks a long row where one line is torn, with the second half below the first", () => {
    const { boxes, left, width } = arranged(chain(13));
    const begins = boxes.flatMap(({ x }, index) => (x === left ? [index] : []));

    expect(begins.length).toBe(2);
    const second = begins[1] ?? 0;
    const bottom = Math.max(...boxes.slice(0, second).map((box) => box.y + box.height));
    for (const box of boxes.slice(second)) expect(box.y).toBeGreaterThan(bottom);
    // 14 ranks in one row: 14 cards of 144 at least, and 13 gaps of 80.
    expect(width).toBeLessThan((14 * 144 + 13 * 80) * 0.6);
  });
});
