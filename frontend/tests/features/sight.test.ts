/** What is brought into sight moves the graph as far as is needed, and stays clear of the tools. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { broughtIntoSight, fitted, isInSight, UNDER_TOOLS } from "@/features/canvas/fit";

const WINDOW = { width: 900, height: 600 };
const VIEW = { x: 0, y: 0, zoom: 1 };
const box = (left: number, top: number, width = 224, height = 160) => ({
  left,
  top,
  right: left + width,
  bottom: top + height,
});
const shown = (view: typeof VIEW, area: ReturnType<typeof box>) =>
  isInSight(view, area, WINDOW.width, WINDOW.height);
const bring = (view: typeof VIEW, area: ReturnType<typeof box>) =>
  broughtIntoSight(view, area, WINDOW.width, WINDOW.height);

describe("a box", () => {
  it("that is in sight moves nothing", () => {
    expect(bring(VIEW, box(300, 200))).toBe(VIEW);
  });

  it("that is cut at one side moves the graph along that side alone, by what is cut and a margin", () => {
    expect(bring(VIEW, box(800, 200))).toEqual({ x: -140, y: 0, zoom: 1 });
    expect(bring(VIEW, box(-20, 200))).toEqual({ x: 36, y: 0, zoom: 1 });
  });

  it("that lies under the tools comes out above them", () => {
    const area = box(300, WINDOW.height - UNDER_TOOLS - 100);

    expect(bring(VIEW, area)).toEqual({ x: 0, y: -76, zoom: 1 });
  });

  it("that is larger than the window is seen from its beginning", () => {
    const view = bring(VIEW, box(2000, 40, 2000, 100));

    expect(view.x + 2000).toBe(16);
  });

  it("anywhere at any zoom is seen then, and asked for again moves nothing", () => {
    const place = fc.integer({ min: -5000, max: 5000 });
    const zoom = fc.double({ min: 0.3, max: 2, noNaN: true });
    fc.assert(
      fc.property(place, place, place, place, zoom, (x, y, left, top, at) => {
        const view = bring({ x, y, zoom: at }, box(left, top));

        expect(shown(view, box(left, top))).toBe(true);
        expect(bring(view, box(left, top))).toBe(view);
      }),
    );
  });
});

it("a graph that fits is fitted above the tools", () => {
  const area = box(0, 0, 700, 480);

  expect(shown(fitted(area, WINDOW, 28, 1), area)).toBe(true);
});
