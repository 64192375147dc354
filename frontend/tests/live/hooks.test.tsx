// @vitest-environment jsdom
import { act, cleanup, render, renderHook } from "@testing-library/react";
import { Profiler, type ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveContext, useEdgeActivity, useIsBottleneck, useNodeActivity } from "@/live/hooks";
import { LiveRun } from "@/live/LiveRun";
import { someGauges } from "../fixtures/runs";

function NodeProbe({ node }: { node: string }) {
  const activity = useNodeActivity(node);
  const isBottleneck = useIsBottleneck(node);
  const edge = useEdgeActivity(`${node}.generate`);
  return <span>{`${node} ${activity} ${isBottleneck} ${edge?.label}`}</span>;
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

  const rate = (node: string, samples: number) =>
    someGauges({
      stages: {
        [`${node}.generate`]: {
          seconds: 1,
          share: 0.5,
          samples_per_second: samples,
          tokens_per_second: null,
        },
      },
    });

  it("only the node whose value changed", () => {
    const live = new LiveRun("r");
    const { painted, text } = show(live);

    act(() => {
      live.applyGauges(rate("n7", 12));
      vi.advanceTimersByTime(300);
    });

    expect([...painted.keys()]).toEqual(["n7"]);
    expect(text()).toContain("12.0 rows/s");
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

  it("the node that begins to run, and the one that is the bottleneck", () => {
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
      live.applyGauges(someGauges({ bottleneck: "n4.generate" }));
      vi.advanceTimersByTime(300);
    });

    expect([...painted.keys()].toSorted()).toEqual(["n3", "n4"]);
    expect(text()).toContain("n3 running false");
    expect(text()).toContain("n4 idle true");
  });
});

describe("an edge of a run", () => {
  afterEach(cleanup);

  it("knows whether its stage is the one that the step waits for", () => {
    const live = new LiveRun("r");
    const wrapper = ({ children }: { children: ReactNode }) => (
      <LiveContext value={live}>{children}</LiveContext>
    );
    const { result } = renderHook(() => useEdgeActivity("a.generate"), { wrapper });
    expect(result.current?.isBottleneck).toBe(false);

    act(() => live.applyGauges(someGauges({ bottleneck: "a.generate" })));

    expect(result.current?.isBottleneck).toBe(true);
  });
});
