/** No box, label or port lies on another, in any loop that comes with the product, at three sizes. */
import { describe, expect, it } from "vitest";
import { NODE_WIDTH, nodeHeight } from "@/document/geometry";
import { arrange, placeNodes } from "@/document/layout";
import type { LoopDocument } from "@/document/types";
import { fitted, isTooLarge, LEAST_FIT, textScale } from "@/features/canvas/fit";
import { type Area, extent, labelArea, overlap, routeEdges } from "@/features/canvas/routes";
import { routeParts } from "@/features/canvas/useFlowEdges";
import { catalog } from "../fixtures/loops";
import { presets } from "../fixtures/presets";

/** Of the canvas in windows of 1024x768, with a high lower panel and without, 1440x900 and 2560x1440. */
const SIZES = [
  [1024, 325],
  [640, 420],
  [880, 560],
  [1980, 1090],
] as const;

function draw(document: LoopDocument, isLive: boolean, width: number, height: number) {
  const places = placeNodes(catalog, document, isLive);
  const boxes = Object.keys(document.nodes).map((id) => {
    const [x, y] = places[id] ?? [0, 0];
    return { id, x, y, height: nodeHeight(catalog, document, id, isLive) };
  });
  const parts = routeParts(catalog, document, isLive);
  const whole = extent(boxes, routeEdges(boxes, parts, 1));
  const view = fitted(whole, width, height);
  const scale = textScale(view.zoom);
  const routes = routeEdges(boxes, parts, scale);
  const labels = parts.flatMap(({ key, characters }) => {
    const label = routes.get(key)?.label;
    return label ? [{ key, area: labelArea(label, characters, scale) }] : [];
  });
  const nodes = boxes.map((box): { key: string; area: Area } => ({
    key: box.id,
    area: {
      left: box.x - 6,
      right: box.x + NODE_WIDTH + 6,
      top: box.y,
      bottom: box.y + box.height,
    },
  }));
  const isWhole = !isTooLarge(whole, width, height);
  return { nodes, labels, parts, routes, view, isWhole, zoom: view.zoom, scale };
}

function clashes(things: { key: string; area: Area }[]): string[] {
  return things.flatMap((one, index) =>
    things
      .slice(index + 1)
      .filter((other) => overlap(one.area, other.area))
      .map((other) => `${one.key} on ${other.key}`),
  );
}

const VIEWS = presets.flatMap(([name, document]) =>
  [false, true].flatMap((isLive) =>
    SIZES.map(([width, height]) => ({ name, document, isLive, width, height })),
  ),
);

describe.each(VIEWS)("$name, live: $isLive, canvas of $width x $height", (view) => {
  const drawn = draw(view.document, view.isLive, view.width, view.height);

  it("nothing lies on anything", () => {
    expect(clashes([...drawn.nodes, ...drawn.labels])).toEqual([]);
  });

  it("what fits is not cut below", () => {
    const lowest = Math.max(...[...drawn.nodes, ...drawn.labels].map(({ area }) => area.bottom));

    if (drawn.isWhole) expect(lowest * drawn.zoom + drawn.view.y).toBeLessThanOrEqual(view.height);
  });

  it("text can be read", () => {
    expect(drawn.zoom).toBeGreaterThanOrEqual(LEAST_FIT);
    expect(12 * drawn.zoom * drawn.scale).toBeGreaterThanOrEqual(10);
  });

  it("in a run every edge has room for its rate", () => {
    const without = drawn.parts.filter(
      ({ key, characters }) => characters > 0 && !drawn.routes.get(key)?.label,
    );
    expect(without.map(({ key }) => key)).toEqual([]);
  });
});

describe.each(presets)("%s, placed in the composer and watched in a run", (_, document) => {
  it("no two boxes overlap", () => {
    const placed = { ...document, layout: arrange(catalog, document, false) };

    expect(clashes(draw(placed, true, 880, 560).nodes)).toEqual([]);
  });
});
