// @vitest-environment jsdom
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import type { Gauges } from "@/api/types";
import { FOLD_HEIGHT, liveHeight, nodeHeight, rateLines } from "@/document/geometry";
import { LiveNodeFooter } from "@/features/canvas/LiveNodeFooter";
import { mainRates, stageRates, wholeText } from "@/features/canvas/stageText";
import { LiveRun } from "@/live/LiveRun";
import { catalog, smallLoop } from "../fixtures/loops";
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

describe("rates of a node", () => {
  it("all of its stages have theirs by name, the rate while busy named as such", () => {
    expect(stageRates(gauges, "actor").map(wholeText)).toEqual([
      "generate: 12.0 rows/s · 1500 tok/s · 30 % of the step\n   while busy 24.0 rows/s · 3000 tok/s",
      "credit: 400 rows/s · 5 % of the step\n   while busy 800 rows/s",
      "learn: 8.00 rows/s · 60 % of the step\n   while busy 16.0 rows/s",
      "sync: 5 % of the step",
    ]);
  });

  it("a probe has its rate too, marked as an evaluation", () => {
    const live = new LiveRun("r");
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="probe" lines={1} />, { wrapper });

    act(() => {
      const probe = { busy: 0.1, evaluation: true } as Gauges["nodes"][string];
      live.applyGauges({ ...gauges, nodes: { probe } });
    });

    expect(screen.getByText("3.00 rows/s")).toBeTruthy();
    expect(screen.getByText("10 % · evaluates")).toBeTruthy();
    expect(stageRates(gauges, "probe").map(wholeText)[0]).toContain("of the time, in evaluations");
  });

  it("where there is little room, those that take the most time stay", () => {
    const names = (lines: number) =>
      mainRates(stageRates(gauges, "actor"), lines).map((one) => one.stage);

    expect(names(2)).toEqual(["generate", "learn"]);
    expect(names(1)).toEqual(["learn"]);
  });

  it("stand in the footer of its box, the stage named", () => {
    const live = new LiveRun("r");
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="actor" lines={2} />, { wrapper });
    expect(screen.getByText("no rate yet")).toBeTruthy();

    act(() => live.applyGauges(gauges));

    expect(screen.getByText("12.0 rows/s")).toBeTruthy();
    expect(screen.getByText("8.00 rows/s")).toBeTruthy();
  });

  it("a node without work in this phase says so", () => {
    const live = new LiveRun("r");
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="start" lines={1} />, { wrapper });

    act(() => live.applyGauges({ ...gauges, step_seconds: 0.4 }));

    expect(screen.getByText("rests in this phase")).toBeTruthy();
  });

  it("a box has room for the stages of its kind", () => {
    const loop = smallLoop();
    const lines = (node: string) => rateLines(catalog, loop, node);

    expect(lines("actor")).toBe(2);
    expect(lines("no such node")).toBe(1);
    const [live, still] = [true, false].map((is) => nodeHeight(catalog, loop, "actor", is));
    expect((live ?? 0) - (still ?? 0)).toBe(liveHeight(2) - FOLD_HEIGHT);
  });

  it("a box that nobody teaches has room for its scores only", () => {
    const reward = { kind: "reward", source: { type: "builtin", name: "exact_match" } };
    const loop = {
      ...smallLoop(),
      nodes: { ...smallLoop().nodes, scores: reward, spare: reward },
      edges: [{ from: "actor.rollouts", to: "scores.rollouts" }],
    };

    expect(rateLines(catalog, loop, "scores")).toBe(1);
    expect(rateLines(catalog, loop, "spare")).toBe(1);
  });

  it.each(["queued", "starting"] as const)("while a run is %s its boxes say so", (state) => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state }));
    const { wrapper } = insideLoop({ live });
    render(<LiveNodeFooter node="actor" lines={2} />, { wrapper });
    expect(screen.getByText("starting")).toBeTruthy();

    act(() => live.setRun(aRun({ state: "running" })));

    expect(screen.getByText("no rate yet")).toBeTruthy();
  });
});
