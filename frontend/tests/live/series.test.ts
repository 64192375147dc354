import { describe, expect, it } from "vitest";
import type { RunEvent } from "@/api/types";
import { LiveRun } from "@/live/LiveRun";
import { addPoint, createSeries, MAX_KEPT, type Series } from "@/live/series";

function longCurve(steps: number): Series {
  const series = createSeries();
  for (let step = 1; step <= steps; step += 1) addPoint(series, step, Math.sin(step), 1);
  return series;
}

describe("a long curve", () => {
  it("keeps no more points however long the run goes on, the newest of all", () => {
    for (const steps of [MAX_KEPT, 20_000, 200_000]) {
      const series = longCurve(steps);

      expect(series.steps.length).toBeLessThanOrEqual(1.25 * MAX_KEPT);
      expect(series.steps.length).toBeGreaterThanOrEqual(MAX_KEPT);
      expect(series.steps).toEqual(series.steps.toSorted((a, b) => a - b));
      expect(new Set(series.steps).size).toBe(series.steps.length);
      expect(series.steps.at(-1)).toBe(steps);
      expect(series.last).toEqual({ step: steps, value: Math.sin(steps) });
    }
  });

  it("goes on from an older step in a later attempt", () => {
    const series = longCurve(20_000);

    addPoint(series, 19_000, 3, 2);

    expect(series.last).toEqual({ step: 19_000, value: 3 });
    expect(Math.max(...series.steps)).toBe(19_000);
  });

  it("makes the run one whose curves the service has, which is told at once", () => {
    const live = new LiveRun("r");
    let told = 0;
    live.watch("status", () => {
      told += 1;
    });
    const events = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, at): RunEvent => {
        const seq = from + at;
        const envelope = { seq, at: "2026-01-01T00:00:00Z", run: "r", attempt: 1, step: seq };
        return { ...envelope, type: "metrics", node: "a", metrics: { loss: seq } };
      });

    live.applyEvents(events(1, MAX_KEPT));
    expect([live.state.isWhole, told]).toEqual([true, 0]);

    live.applyEvents(events(MAX_KEPT, 2 * MAX_KEPT));
    expect([live.state.isWhole, told]).toEqual([false, 1]);
  });
});
