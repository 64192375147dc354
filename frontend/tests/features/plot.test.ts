// @vitest-environment jsdom
import { describe, expect, it, vi } from "vitest";
import { createPlot, WHOLE_STEPS } from "@/features/charts/plot";
import { latestOf } from "@/features/charts/usePlot";
import { zoomOf } from "@/features/charts/zoom";
import { createSeries } from "@/live/series";

/** What a plot was told, in the place of the one that draws. */
const fake = vi.hoisted(() => ({
  data: [[]] as number[][],
  scales: { x: { min: null as number | null, max: null as number | null } },
  series: [{}, {}],
  setData(data: number[][], resets: boolean) {
    fake.data = data;
    if (resets) fake.scales.x = { min: data[0]?.[0] ?? null, max: data[0]?.at(-1) ?? null };
  },
  setScale(_: string, range: { min: number; max: number }) {
    fake.scales.x = range;
  },
}));
vi.mock("uplot", () => ({
  default: class {
    constructor() {
      // biome-ignore lint/correctness/noConstructorReturn: the one that the test looks at
      return fake as never;
    }
  },
}));
vi.mock("uplot/dist/uPlot.min.css", () => ({}));

const data = (last: number) => {
  const steps = Array.from({ length: last }, (_, index) => index + 1);
  return { steps, values: [steps] };
};

function plot(zoom: { min: number; max: number } | null = null) {
  fake.data = [[]];
  return createPlot(document.body, { width: 1, height: 1, colors: ["red"], zoom, onCursor() {} });
}

describe("a chart that gets new numbers", () => {
  it("shows all steps while nothing was dragged", () => {
    const chart = plot();

    chart.setData(data(10), []);
    chart.setData(data(20), []);

    expect(fake.scales.x).toEqual({ min: 1, max: 20 });
    expect(chart.zoom()).toBeNull();
  });

  it("keeps the range that was dragged", () => {
    const chart = plot();
    chart.setData(data(10), []);
    fake.scales.x = { min: 3, max: 6 };

    chart.setData(data(20), []);

    expect(fake.scales.x).toEqual({ min: 3, max: 6 });
    expect(chart.zoom()).toEqual({ min: 3, max: 6 });
  });

  it("a new plot begins with the range of the one before", () => {
    const chart = plot({ min: 3, max: 6 });

    chart.setData(data(10), []);

    expect(fake.scales.x).toEqual({ min: 3, max: 6 });
  });

  it("a single step is no zoom", () => {
    expect(zoomOf([5], { min: 4, max: 6 })).toBeNull();
    expect(zoomOf([], { min: 4, max: 6 })).toBeNull();
  });
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
  const curves = [{ line, spread: null }, null];
  const values = (until: number | null) => latestOf(curves, until).map(({ value }) => value);

  expect(values(null)).toEqual([0.9, null]);
  expect(values(8)).toEqual([0.5, null]);
  expect(values(9)).toEqual([0.9, null]);
  expect(values(1)).toEqual([null, null]);
});
