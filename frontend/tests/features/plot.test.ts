// @vitest-environment jsdom
import type uPlot from "uplot";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createPlot, zoomText } from "@/features/charts/plot";
import { latestOf } from "@/features/charts/usePlot";
import { WHOLE_STEPS } from "@/lib/scale";
import { createSeries } from "@/live/series";

/** The browser's parts that the real uPlot draws with, which jsdom does not have. */
beforeAll(() => {
  const paper: unknown = new Proxy(() => paper, {
    get: (_, name) => (name === Symbol.toPrimitive ? () => 0 : paper),
    set: () => true,
  });
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(paper as never);
  vi.stubGlobal("matchMedia", () => ({ addEventListener() {}, removeEventListener() {} }));
  vi.stubGlobal(
    "Path2D",
    class {
      moveTo() {}
      lineTo() {}
      rect() {}
      arc() {}
      closePath() {}
      addPath() {}
    },
  );
});

const seen = vi.hoisted(() => ({ plot: null as uPlot | null }));
vi.mock("uplot", async (load) => {
  const { default: Real } = await load<{ default: typeof uPlot }>();
  class Seen extends Real {
    constructor(...given: ConstructorParameters<typeof uPlot>) {
      super(...given);
      seen.plot = this;
    }
  }
  return { default: Seen };
});
vi.mock("uplot/dist/uPlot.min.css", () => ({}));

const data = (last: number) => {
  const steps = Array.from({ length: last }, (_, index) => index + 1);
  return { steps, values: [steps, steps, steps] };
};

/** uPlot commits scales after the code that set them. */
const committed = () => Promise.resolve();
const range = () => {
  const { min, max } = seen.plot?.scales.x ?? {};
  return [min, max];
};

describe("a chart that gets new numbers", () => {
  const onZoom = vi.fn();
  beforeEach(() => onZoom.mockClear());

  async function plot(zoom: { min: number; max: number } | null = null) {
    const given = { width: 400, height: 100, colors: ["red"], zoom, onZoom, onCursor() {} };
    return createPlot(document.body, given);
  }

  it("is at the newest step, however many come at once", async () => {
    const chart = await plot();

    for (const last of [2, 3, 40]) chart.setData(data(last), []);
    await committed();
    expect(range()).toEqual([1, 40]);

    for (let last = 41; last <= 400; last += 1) {
      chart.setData(data(last), []);
      if (last % 7 === 0) await committed();
    }
    await committed();
    expect(range()).toEqual([1, 400]);
    expect(onZoom).not.toHaveBeenCalled();
  });

  it("keeps the range that somebody chose, and follows again without it", async () => {
    const chart = await plot();
    chart.setData(data(10), []);
    chart.setZoom({ min: 3, max: 6 });
    chart.setData(data(20), []);
    chart.setData(data(30), []);
    await committed();
    expect(range()).toEqual([3, 6]);

    chart.setZoom(null);
    await committed();
    expect(range()).toEqual([1, 30]);
    chart.setData(data(31), []);
    await committed();
    expect(range()).toEqual([1, 31]);
  });

  it("a new plot begins with the range that was chosen", async () => {
    const chart = await plot({ min: 3, max: 6 });

    chart.setData(data(10), []);
    await committed();

    expect(range()).toEqual([3, 6]);
  });

  it("a drag chooses a range, a double click all steps", async () => {
    const chart = await plot();
    chart.setData(data(101), []);
    await committed();
    const over = seen.plot?.over as HTMLElement;
    const width = seen.plot?.bbox.width ?? 0;

    over.dispatchEvent(new MouseEvent("mousedown", { button: 0 }));
    seen.plot?.setSelect({ left: width / 4, width: width / 2, top: 0, height: 10 });
    expect(onZoom).toHaveBeenCalledTimes(1);
    const [{ min, max }] = onZoom.mock.calls[0] as [{ min: number; max: number }];
    expect([min, max].map(Math.round)).toEqual([26, 76]);
    expect(seen.plot?.select.width).toBe(0);

    over.dispatchEvent(new MouseEvent("dblclick"));
    expect(onZoom).toHaveBeenLastCalledWith(null);
  });

  it("a range that is dragged in another chart is told by that one alone", async () => {
    const chart = await plot();
    chart.setData(data(10), []);
    await committed();

    seen.plot?.setSelect({ left: 10, width: 20, top: 0, height: 10 });

    expect(onZoom).not.toHaveBeenCalled();
  });
});

it("a range is told in whole steps", () => {
  expect(zoomText({ min: 11.2, max: 40.9 })).toBe("steps 12 to 40");
});

describe("marks below a chart", () => {
  it("stand at whole steps only", () => {
    expect(WHOLE_STEPS.slice(0, 5)).toEqual([1, 2, 5, 10, 20]);
    expect(WHOLE_STEPS.every(Number.isInteger)).toBe(true);
  });
});

it("values beside a chart are those that a replay has reached", () => {
  const line = { ...createSeries(), last: { step: 9, value: 0.9 } };
  line.steps.push(2, 5, 9);
  line.values.push(0.2, 0.5, 0.9);
  const curves = [{ line, spread: null, width: 1 }, null];
  const values = (until: number | null) => latestOf(curves, until).map(({ value }) => value);

  expect(values(null)).toEqual([0.9, null]);
  expect(values(8)).toEqual([0.5, null]);
  expect(values(9)).toEqual([0.9, null]);
  expect(values(1)).toEqual([null, null]);
});
