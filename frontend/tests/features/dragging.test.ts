/** While a box is dragged, its own lines follow it and all others stay as they are. */
import { describe, expect, it } from "vitest";
import { routeParts } from "@/features/canvas/useFlowEdges";
import { nodeSize } from "@/graph/geometry";
import { placeNodes } from "@/graph/layout";
import { type Drawn, rerouteEdges, routeEdges } from "@/graph/routes";
import type { Box } from "@/graph/shapes";
import { catalog } from "../fixtures/loops";
import { presets } from "../fixtures/presets";

function drawnOf(document: (typeof presets)[number][1]): Drawn {
  const places = placeNodes(catalog, document);
  const boxes = Object.keys(document.nodes).map((id) => {
    const [x, y] = places[id] ?? [0, 0];
    return { id, x, y, ...nodeSize(catalog, document, id) };
  });
  const edges = routeParts(catalog, document, false);
  return { boxes, edges, drawing: routeEdges(boxes, edges) };
}

const moved = (boxes: readonly Box[], id: string, x: number, y: number) =>
  boxes.map((box) => (box.id === id ? { ...box, x: box.x + x, y: box.y + y } : box));

describe.each(presets)("%s", (_, document) => {
  const drawn = drawnOf(document);
  const { boxes, edges, drawing } = drawn;

  it("lines of other boxes are the same objects", () => {
    for (const { id } of boxes) {
      const now = rerouteEdges(drawn, moved(boxes, id, 40, -24));
      for (const { key, source, target } of edges) {
        if (source === id || target === id) continue;
        if (drawing.laneTop === now.laneTop)
          expect(now.routes.get(key)).toBe(drawing.routes.get(key));
      }
    }
  });

  it("lines of the box end at it, and every edge has one", () => {
    for (const { id } of boxes) {
      const now = rerouteEdges(drawn, moved(boxes, id, 64, 600));
      expect([...now.routes.keys()].toSorted()).toEqual([...drawing.routes.keys()].toSorted());
      for (const { key, source, target } of edges) {
        const before = drawing.routes.get(key)?.points ?? [];
        const after = now.routes.get(key)?.points ?? [];
        const shift = ([x, y]: readonly number[] = []) => [(x ?? 0) + 64, (y ?? 0) + 600];
        if (source === id) expect(after[0]).toEqual(shift(before[0]));
        if (target === id) expect(after.at(-1)).toEqual(shift(before.at(-1)));
      }
    }
  });

  it("learning stays below all boxes, each line on a track of its own", () => {
    for (const { id } of boxes) {
      const now = rerouteEdges(drawn, moved(boxes, id, 0, 600));
      if (now.laneTop === null) continue;
      const { laneTop } = now;
      expect(Math.max(...boxes.map((box) => box.y + box.height))).toBeLessThan(laneTop);
      const low = edges.flatMap(({ key, kind }) => {
        const points = now.routes.get(key)?.points ?? [];
        if (kind !== "learning") return [];
        const y = Math.max(...points.map((point) => point[1]));
        expect(y).toBeGreaterThan(laneTop);
        const along = points.filter((point) => point[1] === y).map(([x]) => x);
        return [{ y, left: Math.min(...along), right: Math.max(...along) }];
      });
      for (const [index, one] of low.entries())
        for (const other of low.slice(index + 1))
          if (one.y === other.y)
            expect(one.right <= other.left || other.right <= one.left).toBe(true);
    }
  });

  it("a box that is put back leaves no trace", () => {
    expect(rerouteEdges(drawn, [...boxes])).toBe(drawing);
  });
});
