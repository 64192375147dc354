// @vitest-environment jsdom
/** How often a chart is drawn while a run tells: by how many curves it has. */
import { cleanup, renderHook } from "@testing-library/react";
import { useRef } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { usePlot } from "@/features/charts/usePlot";
import { LiveRun } from "@/live/LiveRun";
import { insideLoop } from "../fixtures/open";

const drawn = vi.hoisted(() => ({ steps: [] as (number | undefined)[] }));
vi.mock("@/features/charts/plot", () => ({
  createPlot: () => ({
    setData: ({ steps }: { steps: number[] }) => drawn.steps.push(steps.at(-1)),
    setNow() {},
    setSize() {},
    setZoom() {},
    destroy() {},
  }),
}));

beforeEach(() => {
  vi.useFakeTimers();
  drawn.steps = [];
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

it.each([
  [3, 14, 18],
  [25, 4, 9],
])(
  "a chart of %i curves is drawn %i to %i times in 4 seconds, and the last number always",
  (count, least, most) => {
    const live = new LiveRun("r");
    const curves = Array.from({ length: count }, (_, place) => ({
      node: `n${place}`,
      metric: "kl",
    }));
    const { wrapper } = insideLoop({ live });
    renderHook(
      () => {
        const host = useRef<HTMLElement>(document.body);
        const nothing = () => {};
        usePlot(host, {
          kept: null,
          live,
          curves,
          fetched: null,
          parent: null,
          colors: [],
          smoothing: 0,
          height: 10,
          isOnScreen: true,
          zoom: null,
          onCursor: nothing,
          onLatest: nothing,
          onZoom: nothing,
        });
      },
      { wrapper },
    );

    for (let step = 1; step <= 40; step += 1) {
      const told = { at: "2026-01-01T00:00:00Z", run: "r", attempt: 1, type: "metrics" as const };
      live.applyEvents([{ ...told, seq: step, node: "n0", step, metrics: { kl: step } }]);
      vi.advanceTimersByTime(100);
    }
    const times = drawn.steps.length;
    vi.advanceTimersByTime(2000);

    expect(times).toBeGreaterThanOrEqual(least);
    expect(times).toBeLessThanOrEqual(most);
    expect(drawn.steps.at(-1)).toBe(40);
  },
);
