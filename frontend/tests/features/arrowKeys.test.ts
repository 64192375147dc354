import { describe, expect, it } from "vitest";
import { boxTowards, edgeOf, fromEdge } from "@/features/canvas/useRoving";

/**
 *     a ─▶ b ─▶ d
 *      └─▶ c ─┘
 */
const boxes = [
  { id: "a", x: 0, y: 0 },
  { id: "b", x: 300, y: -60 },
  { id: "c", x: 300, y: 80 },
  { id: "d", x: 600, y: 0 },
];
const edges = [
  { id: "ab", source: "a", target: "b" },
  { id: "ac", source: "a", target: "c" },
  { id: "bd", source: "b", target: "d" },
  { id: "cd", source: "c", target: "d" },
];

describe("arrow keys in the graph", () => {
  it.each([
    ["a", "ArrowRight", "b"],
    ["b", "ArrowDown", "c"],
    ["c", "ArrowUp", "b"],
    ["d", "ArrowLeft", "b"],
    ["a", "ArrowLeft", undefined],
    ["gone", "ArrowLeft", undefined],
  ] as const)("from %s with %s to %s", (from, arrow, to) => {
    expect(boxTowards(boxes, from, arrow)?.id).toBe(to);
  });

  it("reach every box from every box", () => {
    const arrows = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] as const;
    const reached = new Set(["a"]);
    for (const id of reached)
      for (const arrow of arrows) {
        const next = boxTowards(boxes, id, arrow);
        if (next) reached.add(next.id);
      }

    expect([...reached].sort()).toEqual(["a", "b", "c", "d"]);
  });

  it("lead from a box to its edges, along them, and to their ends", () => {
    expect(edgeOf(edges, "a", "ArrowRight")).toEqual({ kind: "edge", id: "ab" });
    expect(edgeOf(edges, "a", "ArrowLeft")).toBeNull();
    expect(edgeOf(edges, "d", "ArrowLeft")).toEqual({ kind: "edge", id: "bd" });
    expect(fromEdge(edges, "ab", "ArrowDown")).toEqual({ kind: "edge", id: "ac" });
    expect(fromEdge(edges, "ac", "ArrowUp")).toEqual({ kind: "edge", id: "ab" });
    expect(fromEdge(edges, "ac", "ArrowRight")).toEqual({ kind: "node", id: "c" });
    expect(fromEdge(edges, "ac", "ArrowLeft")).toEqual({ kind: "node", id: "a" });
  });
});
