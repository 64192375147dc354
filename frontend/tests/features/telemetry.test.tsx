// @vitest-environment jsdom
/** What a run of a hundred nodes costs the page: paints a second, and watchers that are left. */
import { act, cleanup, render } from "@testing-library/react";
import { Profiler } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunEvent } from "@/api/types";
import type { LoopDocument } from "@/document/types";
import { LiveBadge } from "@/features/canvas/LiveBadge";
import { LiveNodeFooter } from "@/features/canvas/LiveNodeFooter";
import { BusyRing } from "@/features/canvas/NodeIcon";
import { useLiveVersion } from "@/live/hooks";
import { LiveRun } from "@/live/LiveRun";
import { smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aStage, someGauges } from "../fixtures/runs";

const NODES = Array.from({ length: 100 }, (_, index) => `n${index}`);
const CHARTS = Array.from({ length: 12 }, (_, index) => `chart ${index}`);
const TICKS = 30;
/** Ten times a second. */
const TICK = 100;
const SECONDS = (TICKS * TICK) / 1000;

function aHundredNodes(): LoopDocument {
  const small = smallLoop();
  const { actor } = small.nodes;
  if (!actor) throw new Error("the small loop has an actor");
  const nodes = Object.fromEntries(NODES.map((name) => [name, { ...actor }]));
  return { ...small, nodes, edges: [], layout: {} };
}

/** Reads what a chart reads: all curves, whenever they have news. */
function ChartProbe() {
  return <i>{useLiveVersion("series")}</i>;
}

function watched() {
  const live = new LiveRun("r");
  let watchers = 0;
  const watch = live.watch.bind(live);
  vi.spyOn(live, "watch").mockImplementation((topic, watcher) => {
    const leave = watch(topic, watcher);
    watchers += 1;
    return () => {
      watchers -= 1;
      leave();
    };
  });
  const painted = new Map<string, number>();
  const note = (id: string) => painted.set(id, (painted.get(id) ?? 0) + 1);
  const { wrapper } = insideLoop({ document: aHundredNodes(), live });
  const view = render(
    <>
      {NODES.map((node) => (
        <Profiler key={node} id={node} onRender={note}>
          <BusyRing node={node} />
          <LiveBadge node={node} />
          <LiveNodeFooter node={node} />
        </Profiler>
      ))}
      {CHARTS.map((chart) => (
        <Profiler key={chart} id={chart} onRender={note}>
          <ChartProbe />
        </Profiler>
      ))}
    </>,
    { wrapper },
  );
  painted.clear();
  return { live, painted, view, watchers: () => watchers };
}

/** What nodes do in a tick: those that are named something new, the others what they did. */
function gauges(tick: number, busy: readonly string[]) {
  const stages = NODES.map((node) => {
    const rate = busy.includes(node) ? 10 + tick : 10;
    const told = aStage({ share: 0.5, samples_per_second: rate, wall_samples_per_second: rate });
    return [`${node}.generate`, told] as const;
  });
  return someGauges({ step: tick, step_seconds: 0.1, stages: Object.fromEntries(stages) });
}

function run(live: LiveRun, busy: readonly string[]) {
  for (let tick = 1; tick <= TICKS; tick += 1) {
    act(() => {
      const at = new Date(tick * TICK).toISOString();
      const told = { at, run: "r", attempt: 1, type: "metrics", node: "n0", step: tick };
      live.applyEvents([{ ...told, seq: tick, metrics: { "reward/mean": tick } } as RunEvent]);
      live.applyGauges(gauges(tick, busy));
      vi.advanceTimersByTime(TICK);
    });
  }
}

describe("a run of a hundred nodes that tells ten times a second", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it("paints nodes at most four times a second, and charts five", () => {
    const { live, painted } = watched();

    run(live, NODES);

    const most = (names: readonly string[]) =>
      Math.max(...names.map((name) => painted.get(name) ?? 0));
    expect(most(NODES)).toBeGreaterThan(SECONDS); // the control: they are painted
    expect(most(NODES)).toBeLessThanOrEqual(4 * SECONDS + 1);
    expect(most(CHARTS)).toBeGreaterThan(SECONDS);
    expect(most(CHARTS)).toBeLessThanOrEqual(5 * SECONDS + 1);
  });

  it("paints a node only where what it does has changed", () => {
    const { live, painted } = watched();
    run(live, []);
    painted.clear();

    run(live, ["n7"]);

    expect([...painted.keys()].filter((name) => NODES.includes(name))).toEqual(["n7"]);
  });

  it("leaves nobody who watches when the page is left", () => {
    const { view, watchers } = watched();
    expect(watchers()).toBeGreaterThan(NODES.length);

    view.unmount();

    expect(watchers()).toBe(0);
  });
});
