/** The whole of any loop is fitted into any window; where whole cards could not be read there, with compact ones. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LoopDocument } from "@/document/types";
import { settingNumber } from "@/features/canvas/CompactCard";
import {
  type Draw,
  isInSight,
  opensAt,
  planFit,
  READABLE,
  type Room,
  squeezeInto,
  turned,
} from "@/features/canvas/fit";
import { routeParts } from "@/features/canvas/useFlowEdges";
import type { Squeeze } from "@/graph/compact";
import { compactEdges, compactMeasures, growth, squeezeBoxes } from "@/graph/compact";
import { nodeSize } from "@/graph/geometry";
import { placeNodes, withPlaces } from "@/graph/layout";
import { type RouteEdge, routeEdges } from "@/graph/routes";
import { runLayout } from "@/graph/runLayout";
import { areaOf, type Box, overlap } from "@/graph/shapes";
import { catalog } from "../fixtures/loops";
import { presets } from "../fixtures/presets";

/** What the editor and the run page leave for the graph in windows of 1440 x 900 and 1024 x 768. */
const ROOMS: readonly (Room & { isLive: boolean })[] = [
  { width: 1028, height: 670, corner: { width: 46, height: 46 }, isLive: false },
  { width: 672, height: 538, corner: { width: 46, height: 46 }, isLive: false },
  { width: 994, height: 471, isLive: true },
  { width: 707, height: 372, isLive: true },
];

function boxesOf(document: LoopDocument): Box[] {
  const places = placeNodes(catalog, document);
  return Object.keys(document.nodes).map((id) => {
    const [x, y] = places[id] ?? [0, 0];
    return { id, x, y, ...nodeSize(catalog, document, id) };
  });
}

function drawer(boxes: readonly Box[], parts: readonly RouteEdge[]): Draw {
  return (squeeze) => {
    if (squeeze === null) return routeEdges(boxes, parts);
    const cards = squeezeBoxes(boxes, squeeze);
    const { edges } = compactEdges(parts, cards, squeeze, () => "rewards");
    return routeEdges(cards, edges, compactMeasures(squeeze));
  };
}

function clashes(boxes: readonly Box[]): string[] {
  return boxes.flatMap((one, place) =>
    boxes
      .slice(place + 1)
      .filter((other) => overlap(areaOf(one), areaOf(other)))
      .map((other) => `${one.id} on ${other.id}`),
  );
}

describe.each(presets)("%s", (_, document) => {
  it.each(ROOMS)("is whole in a canvas of $width x $height", ({ isLive, ...room }) => {
    const loop = isLive ? runLayout(catalog, withPlaces(catalog, document)) : document;
    const boxes = boxesOf(loop);
    const draw = drawer(boxes, routeParts(catalog, loop, isLive));

    const planned = planFit(boxes, draw, room);

    if (!planned) throw new Error("nothing is drawn");
    const { squeeze, view } = planned;
    const { area } = draw(squeeze);
    if (!area) throw new Error("nothing is drawn");
    expect(isInSight(view, area, room.width, room.height)).toBe(true);
    expect(squeeze !== null || view.zoom >= READABLE).toBe(true);
    const cards = squeeze ? squeezeBoxes(boxes, squeeze) : boxes;
    expect(clashes(cards)).toEqual([]);
    for (const { id, x, y, width, height } of cards) {
      const right = (x + width) * view.zoom + view.x;
      const top = y * view.zoom + view.y;
      const isUnder = room.corner && right > room.width - room.corner.width && top < 40;
      expect(isUnder ? id : "").toBe("");
      // Room for a line of the name.
      expect(height * view.zoom).toBeGreaterThanOrEqual(16);
      expect(width * view.zoom).toBeGreaterThanOrEqual(cards.length > 12 ? 26 : 30);
    }
  });
});

it("many learners leave half of the window to the cards", () => {
  const many = Array.from({ length: 60 }, (_, index) => index);
  const boxes = many.flatMap((index) =>
    ["actor", "reward"].map((kind, column) => ({
      id: `${kind}${index}`,
      x: column * 300,
      y: index * 160,
      width: 220,
      height: 120,
    })),
  );
  const parts: RouteEdge[] = many.map((index) => ({
    key: `e${index}`,
    source: `reward${index}`,
    target: `actor${index}`,
    sourcePort: "scores",
    targetPort: "rewards",
    kind: "learning",
    follower: null,
    sourceTop: 60,
    targetTop: 60,
    label: 80,
  }));
  const draw = drawer(boxes, parts);

  const planned = planFit(boxes, draw, { width: 1028, height: 670 });

  const { area, laneTop } = draw(planned?.squeeze ?? null);
  if (!planned || !area || laneTop === null) throw new Error("nothing is drawn");
  expect(isInSight(planned.view, area, 1028, 670)).toBe(true);
  expect((area.bottom - laneTop) * planned.view.zoom).toBeLessThan(0.55 * 670);
});

it("a small loop keeps whole cards, and a wide window shows them larger than they are written", () => {
  const boxes = [{ id: "a", x: 0, y: 0, width: 200, height: 100 }];
  const draw = drawer(boxes, []);

  const plain = planFit(boxes, draw, { width: 1000, height: 660 });
  const wide = planFit(boxes, draw, { width: 2100, height: 1118 });

  expect(plain).toEqual({ squeeze: null, view: { x: 400, y: 248, zoom: 1 } });
  expect(wide?.view.zoom).toBe(1.3);
});

it("cards of a tall graph are as wide as the window lets them, and never overlap, wherever they stand", () => {
  const place = fc.integer({ min: 0, max: 40 });
  const boxes = fc.uniqueArray(fc.tuple(place, place), {
    minLength: 2,
    maxLength: 30,
    selector: ([x, y]) => `${Math.floor(x / 2)} ${y}`,
  });
  fc.assert(
    fc.property(boxes, fc.boolean(), (places, isFramed) => {
      const placed = places.map(([x, y], index) => ({
        id: `n${index}`,
        x: Math.floor(x / 2) * 240,
        y: y * 220,
        width: 224,
        height: 100 + (index % 4) * 30,
      }));
      const room = { width: 700, height: 400, isFramed };
      const squeeze = squeezeInto(placed, drawer(placed, []), room);

      expect(clashes(squeezeBoxes(placed, squeeze))).toEqual([]);
      expect(squeeze.zoom).toBeGreaterThan(0);
    }),
    { numRuns: 40 },
  );
});

it("all of a graph is in sight, however large the window and wherever its cards stand", () => {
  const place = fc.integer({ min: 0, max: 30 });
  const places = fc.uniqueArray(fc.tuple(place, place), {
    minLength: 1,
    maxLength: 30,
    selector: ([x, y]) => `${x} ${y}`,
  });
  const side = (least: number, most: number) => fc.integer({ min: least, max: most });
  fc.assert(
    fc.property(places, side(480, 2560), side(300, 1400), (cells, width, height) => {
      const boxes = cells.map(([x, y], index) => ({
        id: `n${index}`,
        x: x * 260,
        y: y * 260,
        width: 224,
        height: 100 + (index % 4) * 30,
      }));
      const draw = drawer(boxes, []);

      const planned = planFit(boxes, draw, { width, height });

      const area = draw(planned?.squeeze ?? null).area;
      if (!planned || !area) throw new Error("nothing is drawn");
      expect(isInSight(planned.view, area, width, height)).toBe(true);
    }),
    { numRuns: 60 },
  );
});

const SQUEEZE: Squeeze = { x: 2, y: 1, width: 2.4, height: 1, gap: 26, zoom: 0.4, track: 20 };

it("cards grow into the room beside them, and keep the least between them", () => {
  const boxes = [
    { id: "a", x: 0, y: 0, width: 100, height: 100 },
    { id: "b", x: 200, y: 0, width: 100, height: 100 },
  ];

  // 2 * 200 from left to left, 64 between them: 336 of 200 would be 1.68, and 1.6 is the most.
  expect(growth(boxes, { x: 2, y: 1, zoom: 1 }, false)).toEqual({
    width: 3.2,
    height: 1.6,
    gap: 26,
  });
  // 20 pixels of the window are 100 of the canvas: 300 of 200.
  expect(growth(boxes, { x: 2, y: 1, zoom: 0.2 }, false)).toEqual({
    width: 3,
    height: 1.6,
    gap: 45,
  });
});

it("a low card takes the room below it, up to that of a name and a number", () => {
  const boxes = [
    { id: "alone", x: 0, y: 0, width: 100, height: 50 },
    { id: "above", x: 500, y: 0, width: 100, height: 50 },
    { id: "below", x: 500, y: 90, width: 100, height: 200 },
  ];

  const cards = squeezeBoxes(boxes, SQUEEZE);

  expect(cards.map(({ height }) => height)).toEqual([85, 64, 200]);
});

it("edges between the same two cards are one, which tells how many it stands for", () => {
  const edge = (key: string, sourcePort: string, kind: RouteEdge["kind"] = "data"): RouteEdge => ({
    key,
    source: "a",
    target: "b",
    sourcePort,
    targetPort: `${sourcePort}_in`,
    kind,
    follower: null,
    sourceTop: sourcePort === "rows" ? 10 : 34,
    targetTop: 10,
    label: 80,
  });
  const edges = [edge("1", "rows"), edge("2", "texts"), edge("3", "texts", "learning")];
  const boxes = ["a", "b"].map((id, at) => ({ id, x: at * 300, y: 0, width: 100, height: 60 }));

  const drawn = compactEdges(edges, boxes, SQUEEZE, () => "rewards");

  expect(drawn.edges.map(({ key }) => key)).toEqual(["1", "3"]);
  expect([...drawn.bundles]).toEqual([["1", ["1", "2"]]]);
  expect(drawn.dots.get("a")).toEqual([{ port: "rows", isTarget: false, top: 30 }]);
  expect(drawn.dots.get("b")).toEqual([{ port: "rows_in", isTarget: true, top: 30 }]);
  expect(drawn.edges[0]).toMatchObject({ sourceTop: 30, targetTop: 30 });
  expect(drawn.edges[1]?.label).toBeGreaterThan(0);
});

it("a closer look opens the cards, and the place that one looks at stays", () => {
  // 40 % is the whole of it, 80 % as wide as on whole cards.
  expect(opensAt(SQUEEZE, 0.4)).toBe(false);
  expect(opensAt(SQUEEZE, 0.43)).toBe(false);
  expect(opensAt(SQUEEZE, 0.44)).toBe(true);

  const view = { x: 100, y: 50, zoom: 0.44 };
  const opened = turned(view, { x: 300, y: 200 }, SQUEEZE, null);
  expect(opened.zoom).toBeCloseTo(0.88);
  // The loop's place under the pointer: (300 - 100) / 0.44 / 2 across, (200 - 50) / 0.44 down.
  expect(opened.x + 227.2727 * 0.88).toBeCloseTo(300, 2);
  expect(opened.y + 340.909 * 0.88).toBeCloseTo(200, 2);
  const back = turned(opened, { x: 300, y: 200 }, null, SQUEEZE);
  expect(back.x).toBeCloseTo(100);
  expect(back.y).toBeCloseTo(50);
  expect(back.zoom).toBeCloseTo(0.44);
});

it("the one number of a card is how it learns, else what its kind tells first in figures", () => {
  const value = (label: string, text: string) => ({
    label,
    text,
    path: [],
    field: null,
    value: text,
  });

  expect(settingNumber([value("source", "task"), value("rows a step", "32")], "")).toBe(
    "32 rows a step",
  );
  expect(settingNumber([value("completions", "8")], "GRPO +1 · lr 4e-4")).toBe("GRPO +1");
  expect(settingNumber([value("check", "exact_match")], "")).toBe("exact_match");
  expect(settingNumber([], "")).toBe("");
});
