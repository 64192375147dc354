/** What is drawn lies on nothing, in any loop that comes with the product: boxes, labels, lines. */
import { describe, expect, it } from "vitest";
import type { LoopDocument } from "@/document/types";
import { routeParts } from "@/features/canvas/useFlowEdges";
import { nodeSize, textWidth } from "@/graph/geometry";
import { labelArea } from "@/graph/labels";
import { placeNodes, withPlaces } from "@/graph/layout";
import { routeEdges } from "@/graph/routes";
import { runLayout } from "@/graph/runLayout";
import { type Area, areaOf, crosses, overlap } from "@/graph/shapes";
import { catalog } from "../fixtures/loops";
import { presets } from "../fixtures/presets";

type Things = { key: string; area: Area }[];

function draw(document: LoopDocument, isLive: boolean) {
  const places = placeNodes(catalog, document);
  const boxes = Object.keys(document.nodes).map((id) => {
    const [x, y] = places[id] ?? [0, 0];
    return { id, x, y, ...nodeSize(catalog, document, id) };
  });
  const parts = routeParts(catalog, document, isLive);
  const drawing = routeEdges(boxes, parts);
  const labels: Things = parts.flatMap(({ key, label }) => {
    const place = drawing.routes.get(key)?.label;
    return place ? [{ key, area: labelArea(place, label) }] : [];
  });
  const nodes: Things = boxes.map((box) => ({ key: box.id, area: areaOf(box) }));
  return { nodes, labels, parts, boxes, drawing };
}

function clashes(things: Things): string[] {
  return things.flatMap((one, index) =>
    things
      .slice(index + 1)
      .filter((other) => overlap(one.area, other.area))
      .map((other) => `${one.key} on ${other.key}`),
  );
}

/** Edges whose line runs over a box; both ends lie at the sides of theirs. */
function behind({ boxes, parts, drawing }: ReturnType<typeof draw>): string[] {
  return parts.flatMap(({ key }) => {
    const { points } = drawing.routes.get(key) ?? { points: [] };
    return boxes
      .filter(({ x, y, width, height }) => {
        const inner = { left: x + 2, right: x + width - 2, top: y + 2, bottom: y + height - 2 };
        return crosses(points, [inner]);
      })
      .map(({ id }) => `${key} behind ${id}`);
  });
}

const VIEWS = presets.flatMap(([name, document]) => [
  { name, document, isLive: false },
  { name, document: runLayout(catalog, withPlaces(catalog, document)), isLive: true },
]);

describe.each(VIEWS)("$name, live: $isLive", ({ document, isLive }) => {
  const drawn = draw(document, isLive);

  it("no box or label lies on another", () => {
    expect(clashes([...drawn.nodes, ...drawn.labels])).toEqual([]);
  });

  it("no edge runs behind a box", () => {
    expect(behind(drawn)).toEqual([]);
  });

  it("what is learned runs below all boxes, on a track of its own where another runs", () => {
    const lowest = Math.max(...drawn.nodes.map(({ area }) => area.bottom));
    const tracks = drawn.parts
      .filter(({ kind }) => kind === "learning")
      .map(({ key }) => {
        const { points } = drawn.drawing.routes.get(key) ?? { points: [] };
        const y = Math.max(...points.map(([, at]) => at));
        const along = points.filter(([, at]) => at === y).map(([x]) => x);
        return { y, left: Math.min(...along), right: Math.max(...along) };
      });

    for (const [index, one] of tracks.entries()) {
      expect(one.y).toBeGreaterThan(lowest);
      for (const other of tracks.slice(index + 1)) {
        if (one.y !== other.y) continue;
        expect(one.right < other.left || other.right < one.left).toBe(true);
      }
    }
  });

  it("every label has a place", () => {
    const without = drawn.parts.filter(
      ({ key, label }) => label > 0 && !drawn.drawing.routes.get(key)?.label,
    );
    expect(without.map(({ key }) => key)).toEqual([]);
  });

  it("no name or port is cut", () => {
    const cut = drawn.boxes.filter(({ id, width }) => textWidth(id, 14) > width - 61);
    expect(cut.map(({ id }) => id)).toEqual([]);
  });
});
