// @vitest-environment jsdom
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import type { Gauges } from "@/api/types";
import { LiveNodeFooter } from "@/features/canvas/LiveNodeFooter";
import { mainRate, stageRates, wholeText } from "@/features/canvas/stageText";
import { LiveRun } from "@/live/LiveRun";
import { insideLoop } from "../fixtures/open";
import { aRun, aStage, someGauges } from "../fixtures/runs";

/** A stage that runs twice as fast as the loop gets rows of it. */
function stage(share: number, samples: number | null, tokens: number | null) {
  return aStage({
    share,
    wall_samples_per_second: samples,
    wall_tokens_per_second: tokens,
    samples_per_second: samples && samples * 2,
    tokens_per_second: tokens && tokens * 2,
  });
}

const gauges: Gauges = someGauges({
  stages: {
    "actor.generate": stage(0.3, 12, 1500),
    "actor.credit": stage(0.05, 400, null),
    "actor.learn": stage(0.6, 8, null),
    "actor.sync": stage(0.05, null, null),
    "other.score": stage(0, 1, null),
    "probe.evaluate": aStage({ share: 0.1, wall_samples_per_second: 3, evaluation: true }),
  },
});

afterEach(cleanup);

/** A rate stands in pieces, of which the unit gives way where there is little room. */
function rateOf(text: string): HTMLElement {
  return screen.getByText(
    (_, element) =>
      element?.classList.contains("stage-rate") === true && element.textContent === text,
  );
}

describe("rates of a node", () => {
  it("all of its stages have theirs by name, the rate while busy named as such", () => {
    expect(stageRates(gauges, "actor").map(wholeText)).toEqual([
      "generate: 12.0 rows/s · 1.50k tok/s · 30 % of the step\n   while busy 24.0 rows/s · 3.00k tok/s",
      "credit: 400 rows/s · 5 % of the step\n   while busy 800 rows/s",
      "learn: 8.00 rows/s · 60 % of the step\n   while busy 16.0 rows/s",
      "sync: 5 % of the step",
    ]);
  });

  it("a probe has its rate too, marked as an evaluation", () => {
    const live = new LiveRun("r");
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="probe" />, { wrapper });

    act(() => {
      const probe = { busy: 0.1, evaluation: true } as Gauges["nodes"][string];
      live.applyGauges({ ...gauges, nodes: { probe } });
    });

    expect(rateOf("3.00 rows/s")).toBeTruthy();
    expect(screen.getByText("eval 10 %")).toBeTruthy();
    expect(stageRates(gauges, "probe").map(wholeText)[0]).toContain("of the time, in evaluations");
  });

  it("on its box is that of the stage that its outputs come from", () => {
    expect(mainRate(stageRates(gauges, "actor"))).toBe("12.0 rows/s");
    expect(mainRate([])).toBe("");
  });

  it("stand on its box", () => {
    const live = new LiveRun("r");
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="actor" />, { wrapper });
    expect(screen.getByText("no rate yet")).toBeTruthy();

    act(() => live.applyGauges(gauges));

    expect(rateOf("12.0 rows/s")).toBeTruthy();
  });

  it("a node without work in this phase says so", () => {
    const live = new LiveRun("r");
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="start" />, { wrapper });

    act(() => live.applyGauges({ ...gauges, step_seconds: 0.4 }));

    expect(screen.getByText("idle in this phase")).toBeTruthy();
  });

  it("a node that works, waits for rows or for its machine says so in words, with the share", () => {
    const says = (node: object, words: string) => {
      const live = new LiveRun("r");
      const { wrapper } = insideLoop({ live });
      const { unmount } = render(<LiveNodeFooter node="actor" />, { wrapper });
      act(() => live.applyGauges({ ...gauges, nodes: { actor: node } } as unknown as Gauges));
      expect(screen.getByText(words)).toBeTruthy();
      unmount();
    };

    says({ busy: 0.74, evaluation: false, starved: 0.1, blocked: 0 }, "busy 74 %");
    says({ busy: 0.2, evaluation: false, starved: 0.61, blocked: 0.1 }, "starved 61 %");
    says({ busy: 0.2, evaluation: false, starved: 0.1, blocked: 0.5 }, "blocked 50 %");
  });

  it("the bottleneck is marked with the stage that is it, and with that stage's share", () => {
    const live = new LiveRun("r");
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="actor" />, { wrapper });

    act(() => live.applyGauges({ ...gauges, bottleneck: "actor.learn" }));

    expect(screen.getByText("learn 60 %")).toBeTruthy();
    expect(screen.getByRole("img", { name: "bottleneck" })).toBeTruthy();
  });

  it.each(["queued", "starting"] as const)("while a run is %s its boxes say so", (state) => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state }));
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="actor" />, { wrapper });
    expect(screen.getByText("starting")).toBeTruthy();

    act(() => live.setRun(aRun({ state: "running" })));

    expect(screen.getByText("no rate yet")).toBeTruthy();
  });
});
