import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveRun } from "@/live/LiveRun";
import { aRun, someGauges } from "../fixtures/runs";

describe("a watched run", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("tells of gauges at most four times a second, and of the last ones always", () => {
    const live = new LiveRun("r");
    const told: (number | null | undefined)[] = [];
    live.watch("gauges", () => told.push(live.state.gauges?.step));

    for (let step = 0; step < 100; step += 1) {
      live.applyGauges(someGauges({ step }));
      vi.advanceTimersByTime(10);
    }
    vi.advanceTimersByTime(1000);

    expect(told.length).toBeGreaterThan(2);
    expect(told.length).toBeLessThanOrEqual(6);
    expect(told.at(-1)).toBe(99);
  });

  it("tells of curves at most five times a second", () => {
    const live = new LiveRun("r");
    let told = 0;
    live.watch("series", () => {
      told += 1;
    });

    for (let seq = 1; seq <= 200; seq += 1) {
      live.applyEvents([
        {
          seq,
          at: "2026-01-01T00:00:00Z",
          run: "r",
          attempt: 1,
          type: "metrics",
          node: "a",
          step: seq,
          metrics: { loss: 1 },
        },
      ]);
      vi.advanceTimersByTime(5);
    }

    expect(told).toBeLessThanOrEqual(7);
  });

  it("tells of gauges and curves together, though its watchers take their time", () => {
    const live = new LiveRun("r");
    const told: string[] = [];
    let tick = 0;
    for (const topic of ["gauges", "series"] as const) {
      live.watch(topic, () => {
        told.push(`${tick} ${topic}`);
        vi.setSystemTime(Date.now() + 20);
        setTimeout(() => {
          tick += 1;
        });
      });
    }

    for (let step = 1; step <= 20; step += 1) {
      live.applyEvents([
        {
          seq: step,
          at: "2026-01-01T00:00:00Z",
          run: "r",
          attempt: 1,
          type: "metrics",
          node: "a",
          step,
          metrics: { loss: 1 },
        },
      ]);
      live.applyGauges(someGauges({ step }));
      vi.advanceTimersByTime(100);
    }

    const ticks = new Set(told.map((one) => one.split(" ")[0]));
    expect(ticks.size).toBeGreaterThan(4); // the control: it is told all the time
    expect(ticks.size).toBeLessThanOrEqual(11);
    // Each is told with the other, but where it began: gauges had not come yet.
    expect(Math.abs(told.length - 2 * ticks.size)).toBeLessThanOrEqual(1);
  });

  it("the state of the run follows its events at once", () => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "starting" }));
    live.setConnection("live");

    live.applyEvents([
      {
        seq: 1,
        at: "2026-01-01T00:00:00Z",
        run: "r",
        attempt: 1,
        type: "run.state",
        state: "running",
      },
    ]);

    expect(live.run?.state).toBe("running");
  });

  it("who left is not told", () => {
    const live = new LiveRun("r");
    const watcher = vi.fn();
    live.watch("status", watcher)();

    live.setConnection("live");

    expect(watcher).not.toHaveBeenCalled();
  });
});
