import { describe, expect, it } from "vitest";
import type { RunEvent } from "@/api/types";
import { applyEvent, MAX_LINES } from "@/live/reducer";
import { LiveState } from "@/live/state";

let seq = 0;

function event(type: string, rest: Partial<RunEvent> = {}): RunEvent {
  seq += 1;
  return {
    seq,
    at: new Date(Date.UTC(2026, 0, 1) + seq * 1000).toISOString(),
    run: "r",
    attempt: 1,
    type,
    ...rest,
  };
}

function play(...events: RunEvent[]): LiveState {
  const state = new LiveState();
  for (const one of events) applyEvent(state, one);
  return state;
}

const curve = (state: LiveState, metric: string, node: string) => {
  const series = state.series.get(metric)?.get(node);
  return { steps: series?.steps, values: series?.values };
};

describe("live reducer", () => {
  it("each learner has its own curve", () => {
    const state = play(
      event("metrics", { node: "tens", step: 1, metrics: { loss: 2 } }),
      event("metrics", { node: "units", step: 1, metrics: { loss: 3 } }),
      event("metrics", { node: "tens", step: 2, metrics: { loss: 1 } }),
    );

    expect(curve(state, "loss", "tens")).toEqual({ steps: [1, 2], values: [2, 1] });
    expect(curve(state, "loss", "units")).toEqual({ steps: [1], values: [3] });
  });

  it("a seen event is passed over", () => {
    const state = new LiveState();
    const first = event("metrics", { node: "a", step: 1, metrics: { loss: 2 } });

    applyEvent(state, first);
    const topic = applyEvent(state, { ...first, metrics: { loss: 9 } });

    expect(topic).toBeNull();
    expect(curve(state, "loss", "a").values).toEqual([2]);
  });

  it("the later attempt counts where a step was done twice", () => {
    const state = play(
      event("metrics", { node: "a", step: 1, metrics: { loss: 1 } }),
      event("metrics", { node: "a", step: 2, metrics: { loss: 2 } }),
      event("metrics", { node: "a", step: 3, metrics: { loss: 3 } }),
      event("metrics", { node: "a", step: 2, attempt: 2, metrics: { loss: 20 } }),
    );

    expect(curve(state, "loss", "a")).toEqual({ steps: [1, 2], values: [1, 20] });
    expect(state.attempt).toBe(2);
  });

  it("null in the metrics is a gap", () => {
    const state = play(event("metrics", { node: "a", step: 1, metrics: { loss: null } }));

    expect(curve(state, "loss", "a").values).toEqual([Number.NaN]);
  });

  it("a stage runs from its start to its end", () => {
    const started = event("stage.started", { node: "a", step: 1, stage: "a.learn", phase: "rl" });
    const state = new LiveState();

    applyEvent(state, started);
    expect([...state.running.keys()]).toEqual(["a.learn"]);

    applyEvent(
      state,
      event("stage.finished", {
        node: "a",
        step: 1,
        stage: "a.learn",
        phase: "rl",
        seconds: 1,
        samples: 8,
        tokens: 64,
      }),
    );
    expect(state.running.size).toBe(0);
    expect(state.spans).toMatchObject([
      { stage: "a.learn", node: "a", step: 1, samples: 8, tokens: 64 },
    ]);
    expect((state.spans[0]?.end ?? 0) - (state.spans[0]?.start ?? 0)).toBe(1000);
  });

  it("the end of a stage whose start was missed is placed by its length", () => {
    const state = play(event("stage.finished", { stage: "a.learn", phase: "rl", seconds: 2 }));

    const [span] = state.spans;
    expect((span?.end ?? 0) - (span?.start ?? 0)).toBe(2000);
  });

  it("nothing runs on after the run", () => {
    const state = play(
      event("stage.started", { stage: "a.learn", phase: "rl" }),
      event("run.state", {
        state: "failed",
        message: "no memory",
        error: { code: "x", message: "no memory" },
      }),
    );

    expect(state.running.size).toBe(0);
    expect(state.state).toBe("failed");
    expect(state.error).toMatchObject({ message: "no memory" });
    expect(state.lines.at(-1)).toMatchObject({ level: "error", message: "no memory" });
  });

  it("phases are marked at the step at which they start", () => {
    const state = play(
      event("phase", {
        phase: "warm-up",
        index: 0,
        round: 1,
        learn: ["a.x"],
        steps: 5,
        state: "started",
        step: 0,
      }),
      event("phase", { phase: "warm-up", index: 0, round: 1, state: "finished", step: 5 }),
      event("phase", { phase: "rl", index: 1, round: 1, learn: [], state: "started" }),
      event("metrics", { node: "a", step: 6, metrics: { loss: 1 } }),
    );

    expect(state.phases.map(({ name, step }) => [name, step])).toEqual([
      ["warm-up", 0],
      ["rl", 6],
    ]);
  });

  it("samples tell of their step, once", () => {
    const rows = [{ node: "a", prompt: "1+1", completion: "2", reward: 1 }];
    const state = play(
      event("sample", { step: 3, path: "samples/3", rows }),
      event("sample", { step: 3, path: "samples/3", rows }),
      event("sample", { step: 4, path: "samples/4", rows }),
    );

    expect(state.sampleSteps).toEqual([3, 4]);
  });

  it("alerts, checkpoints and edits stand in the log", () => {
    const state = play(
      event("alert", { level: "warning", code: "collapse", message: "entropy fell" }),
      event("checkpoint", { path: "checkpoints/step-5", best: true, step: 5 }),
      event("edit", { changes: { "nodes.a.training.optimizer.lr": 0.1 }, by: "user" }),
      event("log", { level: "info", message: "hello" }),
    );

    expect(state.alerts).toHaveLength(1);
    expect(state.lines.map((line) => line.source)).toEqual(["alert", "checkpoint", "edit", "log"]);
    expect(state.lines[2]?.message).toContain("nodes.a.training.optimizer.lr = 0.1");
  });

  it("phases and triggers stand in the log, apart from alerts", () => {
    const state = play(
      event("phase", { state: "started", phase: "rl", round: 2, steps: 40, learn: ["a.rewards"] }),
      event("alert", { level: "info", code: "trigger.fired", message: "kl set off a trigger" }),
      event("alert", { level: "warning", code: "collapse", message: "entropy fell" }),
      event("phase", { state: "finished", phase: "rl" }),
    );

    expect(state.lines.map(({ source, message }) => [source, message])).toEqual([
      ["phase", "Phase rl, round 2, began for 40 steps; learns at a.rewards."],
      ["trigger", "kl set off a trigger"],
      ["alert", "entropy fell"],
      ["phase", "Phase rl ended."],
    ]);
  });

  it("what a metric showed before an attempt began still stands in it", () => {
    const found = { level: "warning", message: "look" };
    const state = play(
      event("alert", { ...found, code: "cut", node: "a", metric: "rollout/finished", step: 3 }),
      event("alert", { ...found, code: "late", node: "a", metric: "kl", step: 9 }),
      event("alert", { ...found, code: "lost", step: 4 }),
      { ...event("run.state", { state: "starting", step: 6 }), attempt: 2 },
    );

    expect(state.alerts.map((one) => one.code)).toEqual(["cut"]);
  });

  it("the log does not grow without end", () => {
    const state = new LiveState();
    for (let index = 0; index < MAX_LINES * 2; index += 1) {
      applyEvent(state, event("log", { level: "info", message: `line ${index}` }));
    }

    expect(state.lines.length).toBeLessThanOrEqual(MAX_LINES * 1.25);
    expect(state.lines.at(-1)?.message).toBe(`line ${MAX_LINES * 2 - 1}`);
  });

  it("an unknown type is passed over and counted as seen", () => {
    const state = play(event("from.the.future", { what: 1 }));

    expect(state.lastSeq).toBe(seq);
  });

  it("edits are kept in their order", () => {
    const state = play(
      event("edit", { step: 1, changes: { "nodes.a.lr": 1 } }),
      event("edit", { step: 2, changes: { "nodes.a.lr": 2 } }),
    );

    expect(state.edits.map((edit) => edit.changes)).toEqual([
      { "nodes.a.lr": 1 },
      { "nodes.a.lr": 2 },
    ]);
  });

  it("best checkpoints, which come often, are no part of the story", () => {
    const state = play(
      event("checkpoint", { path: "checkpoints/step-5", best: true }),
      event("checkpoint", { path: "checkpoints/step-6", best: false }),
    );

    expect(state.lines.map((line) => line.level)).toEqual(["debug", "info"]);
  });

  it("a resume from an older checkpoint loses the edits after it", () => {
    const state = play(
      event("edit", { step: 4, changes: { "nodes.a.lr": 1 } }),
      event("edit", { step: 9, changes: { "nodes.a.lr": 2 } }),
      event("run.state", { attempt: 2, state: "starting" }),
      event("run.state", { attempt: 2, state: "running", step: 5 }),
    );

    expect(state.edits.map((edit) => edit.step)).toEqual([4]);
  });
});
