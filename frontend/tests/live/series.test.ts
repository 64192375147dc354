import { describe, expect, it } from "vitest";
import { chartData, MAX_POINTS } from "@/features/charts/chartData";
import { addPoint, createSeries, MAX_KEPT, type Series } from "@/live/series";

function longCurve(steps: number, shape: (step: number) => number = Math.sin): Series {
  const series = createSeries();
  for (let step = 1; step <= steps; step += 1) addPoint(series, step, shape(step), 1);
  return series;
}

describe("a long curve", () => {
  it("keeps no more points however long the run goes on", () => {
    for (const steps of [MAX_KEPT, 20_000, 200_000]) {
      const series = longCurve(steps);

      expect(series.steps.length).toBeLessThanOrEqual(MAX_KEPT);
      expect(series.steps.length).toBeGreaterThan(MAX_KEPT / 4);
      expect(series.steps).toEqual(series.steps.toSorted((a, b) => a - b));
      expect(new Set(series.steps).size).toBe(series.steps.length);
    }
  });

  it("is gathered anew only when it has doubled", () => {
    const series = longCurve(200_000);

    expect(Math.log2(series.width)).toBeLessThanOrEqual(Math.ceil(Math.log2(400_000 / MAX_KEPT)));
  });

  it("keeps every peak and its newest value", () => {
    const series = longCurve(50_000, (step) => (step === 31_337 ? 9 : step === 7 ? -9 : 0));

    expect(series.values).toContain(9);
    expect(series.values).toContain(-9);
    expect(series.steps[series.values.indexOf(9)]).toBe(31_337);
    expect(series.last).toEqual({ step: 50_000, value: 0 });
  });

  it("is as dense at its beginning as at its end", () => {
    const { steps } = longCurve(100_000);

    const early = steps.filter((step) => step <= 50_000).length;
    expect(early / steps.length).toBeGreaterThan(0.45);
    expect(early / steps.length).toBeLessThan(0.55);
  });

  it("is drawn with a bounded number of points, the newest among them", () => {
    const drawn = chartData(
      [200_000, 150_000].map((steps) => ({ line: longCurve(steps), spread: null })),
      0.5,
    );

    expect(drawn.steps.length).toBeLessThanOrEqual(2 * MAX_POINTS);
    expect(drawn.steps.at(-1)).toBe(200_000);
  });

  it("goes on from an older step in a later attempt", () => {
    const series = longCurve(20_000);

    addPoint(series, 5_000, 3, 2);

    expect(series.last).toEqual({ step: 5_000, value: 3 });
    expect(Math.max(...series.steps)).toBe(5_000);
  });
});
