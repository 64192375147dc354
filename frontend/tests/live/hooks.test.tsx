// @vitest-environment jsdom
import { act, cleanup, render, renderHook } from "@testing-library/react";
import { Profiler, type ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunEvent } from "@/api/types";
import { LiveContext, useEdgeActivity, useEdgeFacts, useNodeActivity } from "@/live/hooks";
import { LiveRun } from "@/live/LiveRun";
import { aFlow, aStage, someGauges } from "../fixtures/runs";

function NodeProbe({ node }: { node: string }) {
  const activity = useNodeActivity(node);
  const edge = useEdgeActivity(`${node}.rows->sink.rows`, `${node}.generate`);
  return <span>{`${node} ${activity} ${edge?.label}`}</span>;
}

const NODES = Array.from({ length: 50 }, (_, index) => `n${index}`);

describe("what a tick of the gauges repaints", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
  });

  function show(live: LiveRun) {
    const painted = new Map<string, number>();
    const view = render(
      <LiveContext value={live}>
        {NODES.map((node) => (
          <Profiler
            key={node}
            id={node}
            onRender={(id) => painted.set(id, (painted.get(id) ?? 0) + 1)}
          >
            <NodeProbe node={node} />
          </Profiler>
        ))}
      </LiveContext>,
    );
    painted.clear();
    return { painted, text: () => view.container.textContent ?? "" };
  }

  const rate = (node: string, rows_per_second: number) =>
    someGauges({
      edges: { [`${node}.rows->sink.rows`]: aFlow({ rows_per_second }) },
    });

  it("only the node whose value changed", () => {
    const live = new LiveRun("r");
    const { painted, text } = show(live);

    act(() => {
      live.applyGauges(rate("n7", 12));
      vi.advanceTimersByTime(300);
    });

    expect([...painted.keys()]).toEqual(["n7"]);
    expect(text()).toContain("12.0/s");
  });

  it("nothing, where the values are the same", () => {
    const live = new LiveRun("r");
    const { painted } = show(live);
    act(() => {
      live.applyGauges(rate("n7", 12));
      vi.advanceTimersByTime(300);
    });
    painted.clear();

    act(() => {
      live.applyGauges(rate("n7", 12));
      vi.advanceTimersByTime(300);
    });

    expect(painted.size).toBe(0);
  });

  it("the node that begins to run", () => {
    const live = new LiveRun("r");
    const { painted, text } = show(live);

    act(() => {
      live.applyEvents([
        {
          seq: 1,
          at: "2026-01-01T00:00:00Z",
          run: "r",
          attempt: 1,
          type: "stage.started",
          node: "n3",
          stage: "n3.learn",
          phase: "p",
        },
      ]);
      vi.advanceTimersByTime(300);
    });

    expect([...painted.keys()].toSorted()).toEqual(["n3"]);
    expect(text()).toContain("n3 running");
    expect(text()).toContain("n4 idle");
  });
});

describe("an edge of a run", () => {
  const EDGE = "a.rows->b.rows";

  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
  });

  function show() {
    const live = new LiveRun("r");
    const wrapper = ({ children }: { children: ReactNode }) => (
      <LiveContext value={live}>{children}</LiveContext>
    );
    const { result } = renderHook(
      () => ({
        edge: useEdgeActivity(EDGE, "a.generate"),
        facts: useEdgeFacts(EDGE, "a.generate"),
      }),
      { wrapper },
    );
    const gauge = (rows: number, rows_per_second: number | null, evaluation = false) =>
      act(() => {
        const stages = { "a.generate": aStage({ samples_per_second: 44_400 }) };
        const edges = { [EDGE]: aFlow({ rows, rows_per_second, evaluation }) };
        live.applyGauges(someGauges({ edges, stages, step_seconds: 0.374 }));
        vi.advanceTimersByTime(250);
      });
    return { live, gauge, edge: () => result.current.edge, facts: () => result.current.facts };
  }

  it("knows whether its stage is the one that the step waits for", () => {
    const { live, edge } = show();
    expect(edge()?.isBottleneck).toBe(false);

    act(() => {
      live.applyGauges(someGauges({ bottleneck: "a.generate" }));
      vi.advanceTimersByTime(300);
    });

    expect(edge()?.isBottleneck).toBe(true);
  });

  it("shows what it delivers, and its giver's speed only as what it is", () => {
    const { gauge, edge, facts } = show();

    gauge(2560, 256 / 0.374);

    expect(edge()?.label).toBe("684/s");
    expect(facts().split("\n")).toEqual([
      "684 rows/s of the whole time",
      "256 rows a step",
      "a.generate while busy: 44.4k rows/s",
      "2,560 rows since the start",
    ]);
  });

  it("flows while rows come, and rests a second after the last", () => {
    const { gauge, edge } = show();
    gauge(256, 684);
    expect(edge()?.isActive).toBe(false);

    gauge(512, 684);
    expect(edge()?.isActive).toBe(true);

    act(() => void vi.advanceTimersByTime(1300));
    expect(edge()?.isActive).toBe(false);
  });

  it("flows or rests as of the last gauges, however long a reading takes", () => {
    const { gauge, live } = show();
    gauge(256, 684);
    gauge(512, 684);
    const [edge] = Object.keys(live.state.gauges?.edges ?? {});

    vi.setSystemTime(Date.now() + 5_000);

    expect(live.hasFlow(edge ?? "")).toBe(true);
    act(() => void vi.advanceTimersByTime(1300));
    expect(live.hasFlow(edge ?? "")).toBe(false);
  });

  it("rests while its giver works and nothing has come yet", () => {
    const { live, gauge, edge } = show();
    gauge(0, null);

    act(() => {
      const at = "2026-01-01T00:00:00Z";
      const started = { type: "stage.started", stage: "a.generate", node: "a", phase: "p" };
      live.applyEvents([{ seq: 1, at, run: "r", attempt: 1, ...started } as RunEvent]);
      vi.advanceTimersByTime(300);
    });
    gauge(0, null);

    expect(edge()?.isActive).toBe(false);
    expect(edge()?.label).toBe("");
  });

  it("says 0 where nothing flows in this phase", () => {
    const { gauge, edge } = show();

    gauge(512, 0);

    expect(edge()?.label).toBe("0/s");
  });
});
