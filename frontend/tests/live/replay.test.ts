import { describe, expect, it, vi } from "vitest";
import type { RunEvent } from "@/api/types";
import { latestOf } from "@/features/charts/usePlot";
import { LiveRun } from "@/live/LiveRun";
import { ReplayPlayer } from "@/live/ReplayPlayer";
import { endOfStep, replayState } from "@/live/replay";
import { gaugesOf } from "@/live/replayGauges";

const AT = Date.parse("2026-01-01T00:00:00Z");

/** A run of so many steps of 10 s: 6 s of writing, 3 s of learning, and 1 s in which nothing is done. */
function recorded(steps: number): RunEvent[] {
  const events: RunEvent[] = [];
  const tell = (seconds: number, fields: Partial<RunEvent>) =>
    events.push({
      seq: events.length + 1,
      at: new Date(AT + seconds * 1000).toISOString(),
      run: "r",
      attempt: 1,
      type: "log",
      ...fields,
    });
  tell(0, { type: "run.state", state: "running" });
  tell(0, { type: "phase", phase: "rl", index: 0, state: "started", step: 0 });
  for (let step = 1; step <= steps; step += 1) {
    const begin = (step - 1) * 10;
    const stage = { node: "actor", step, phase: "rl", pool: "main" };
    tell(begin, { ...stage, type: "stage.started", stage: "actor.generate" });
    tell(begin + 6, {
      ...stage,
      type: "stage.finished",
      stage: "actor.generate",
      seconds: 6,
      samples: 12,
    });
    tell(begin + 6, { ...stage, type: "stage.started", stage: "actor.learn" });
    tell(begin + 9, {
      ...stage,
      type: "stage.finished",
      stage: "actor.learn",
      seconds: 3,
      samples: 12,
    });
    tell(begin + 9, { type: "metrics", node: "actor", step, metrics: { loss: 1 / step } });
    tell(begin + 9, { type: "sample", step, path: `samples/step-${step}.jsonl`, rows: [] });
  }
  tell(steps * 10, { type: "checkpoint", step: steps, path: "checkpoints/last" });
  tell(steps * 10, { type: "run.state", state: "finished", step: steps });
  return events;
}

const record = (steps: number) => ({ marks: [], events: recorded(steps) });

describe("a run that is replayed", () => {
  it("at its end is what the run is by now", () => {
    const live = new LiveRun("r");
    live.applyEvents(recorded(12));

    expect(replayState(record(12), Number.POSITIVE_INFINITY)).toEqual(live.state);
  });

  it("a moment before its end is not", () => {
    const live = new LiveRun("r");
    live.applyEvents(recorded(12));

    const before = replayState(record(12), AT + 119_000);

    expect(before).not.toEqual(live.state);
    expect(before.state).toBe("running");
    expect(before.checkpoints).toEqual([]);
  });

  it("in the middle shows the stage at work, and nothing of what came later", () => {
    const state = replayState(record(12), AT + 27_000); // step 3: 6 s written, learning for 1 s

    expect([...state.running.keys()]).toEqual(["actor.learn"]);
    expect(state.step).toBe(3);
    expect(state.series.get("loss")?.get("actor")?.steps).toEqual([1, 2]);
    expect(state.sampleSteps).toEqual([1, 2]);
  });

  it("has rates again, counted from its spans", () => {
    const gauges = gaugesOf(replayState(record(12), AT + 120_000), 12);

    // eight steps, the last without its idle second: 79 s
    expect(gauges?.bottleneck).toBe("actor.generate");
    expect(gauges?.stages["actor.generate"]?.seconds).toBe(6);
    expect(gauges?.stages["actor.generate"]?.share).toBeCloseTo(48 / 79);
    expect(gauges?.stages["actor.generate"]?.samples_per_second).toBe(2);
    expect(gauges?.nodes.actor?.busy).toBeCloseTo((48 + 24) / 79);
  });
});

describe("edges of the past", () => {
  /** Two steps that learn from rewards after one that learns from demonstrations; 2 s and 4 s long. */
  function taught(): RunEvent[] {
    const events: RunEvent[] = [];
    const tell = (seconds: number, fields: Partial<RunEvent>) =>
      events.push({
        ...{ seq: events.length + 1, run: "r", attempt: 1, type: "log" },
        ...{ at: new Date(AT + seconds * 1000).toISOString(), ...fields },
      });
    const stage = (name: string, step: number, begin: number, end: number, samples: number) => {
      const [node] = name.split(".");
      const told = { node: node ?? "", step, stage: name };
      tell(begin, { ...told, type: "stage.started" });
      tell(end, { ...told, type: "stage.finished", seconds: end - begin, samples });
    };
    const phase = (name: string, index: number, step: number, learn: string[], seconds: number) =>
      tell(seconds, { type: "phase", phase: name, index, state: "started", step, learn });
    const took = (step: number, seconds: number, at: number) =>
      tell(at, { type: "metrics", step, metrics: { "step/seconds": seconds } });
    tell(0, { type: "run.state", state: "running" });
    phase("warm", 0, 0, ["actor.demonstrations"], 0);
    stage("problems.load", 1, 0, 1, 32);
    stage("actor.learn", 1, 1, 2, 32);
    took(1, 2, 2);
    phase("rl", 1, 1, ["actor.rewards"], 2);
    for (const [step, begin, seconds] of [
      [2, 2, 2],
      [3, 4, 4],
    ] as const) {
      stage("problems.load", step, begin, begin + 0.5, 8);
      stage("actor.generate", step, begin + 0.5, begin + 1, 64);
      stage("exact.score", step, begin + 1, begin + 1.5, 64);
      stage("actor.learn", step, begin + 1.5, begin + seconds, 64);
      took(step, seconds, begin + seconds);
    }
    tell(8, { type: "stage.started", node: "probe", step: 3, stage: "probe.evaluate" });
    return events;
  }

  const FLOWS = [
    { key: "rows", stage: "problems.load", reader: "actor", teaches: null },
    { key: "shown", stage: "problems.load", reader: "actor", teaches: "actor.demonstrations" },
    { key: "told", stage: "actor.generate", reader: "exact", teaches: null },
    { key: "paid", stage: "exact.score", reader: "actor", teaches: "actor.rewards" },
    { key: "idle", stage: "problems.load", reader: "nobody", teaches: null },
  ];
  const ratesAt = (step: number) => {
    const events = taught();
    const end = endOfStep(events, step);
    const state = replayState({ marks: [], events }, Number.POSITIVE_INFINITY, end?.seq);
    const gauges = gaugesOf(state, 3, FLOWS);
    const edges = Object.entries(gauges?.edges ?? {});
    return Object.fromEntries(edges.map(([key, { rows_per_second }]) => [key, rows_per_second]));
  };

  it("brought what their givers made in the phase's own steps, over the time that these took", () => {
    // 2 steps of 8 prompts and 64 texts in 2 s + 4 s
    expect(ratesAt(3)).toEqual({ rows: 16 / 6, shown: 0, told: 128 / 6, paid: 128 / 6, idle: 0 });
  });

  it("of evaluations only are so many a second between these, though the reader works in the steps", () => {
    const events = taught();
    const add = (type: RunEvent["type"], stage: string, seconds: number, samples: number) =>
      events.push({
        ...{ seq: events.length + 1, run: "r", attempt: 1, step: 3, type, stage, samples },
        ...{ node: stage.split(".")[0] ?? "", evaluation: "probe", seconds: 0.5 },
        at: new Date(AT + seconds * 1000).toISOString(),
      });
    for (const [at, stage, samples] of [
      [8, "held_out.load", 40],
      [9, "actor.generate", 40],
    ] as const) {
      add("stage.started", stage, at, 0);
      add("stage.finished", stage, at + 1, samples);
    }
    const state = replayState({ marks: [], events }, Number.POSITIVE_INFINITY);
    const held = { key: "held", stage: "held_out.load", reader: "actor", teaches: null };

    const edges = gaugesOf(state, 3, [held, ...FLOWS])?.edges ?? {};

    expect(edges.held).toMatchObject({ rows_per_second: 40 / 10, evaluation: true });
    expect(edges.rows).toMatchObject({ rows_per_second: 16 / 6, evaluation: false });
    expect(edges.shown).toMatchObject({ rows_per_second: 0, evaluation: false });
  });

  it("of a phase that has just begun are those of the one before it", () => {
    expect(ratesAt(1)).toEqual({ rows: 16, shown: 16, told: 0, paid: 0, idle: 0 });
  });
});

describe("the player", () => {
  function player(events: RunEvent[], steps: number) {
    const deps = {
      fetchEvents: vi.fn(async (_: string, after: number, limit: number) => {
        const page = events.filter(({ seq }) => seq > after).slice(0, limit);
        const last = events.at(-1)?.seq ?? 0;
        return { events: page, last_seq: last, has_more: (page.at(-1)?.seq ?? last) < last };
      }),
      fetchEventsOfStep: vi.fn(async (_: string, step: number, limit: number) => {
        const from = events.findIndex((one) => (one.step ?? -1) >= step);
        const page = events.slice(from, from + limit);
        return { events: page, last_seq: events.at(-1)?.seq ?? 0, has_more: true };
      }),
      fetchMarks: vi.fn(async () => ({
        seq: events.at(-1)?.seq ?? 0,
        events: events.filter(({ type }) => ["run.state", "phase", "checkpoint"].includes(type)),
      })),
    };
    return { made: new ReplayPlayer("r", events.at(-1)?.seq ?? 0, steps, [], deps), deps };
  }

  it("goes forth and back, and reads a short run once", async () => {
    const { made, deps } = player(recorded(12), 12);

    await made.seek(12);
    expect(made.live.state.state).toBe("finished");
    await made.seek(4);
    expect(made.live.state.series.get("loss")?.get("actor")?.steps).toEqual([1, 2, 3, 4]);
    await made.seek(9);
    expect(made.step).toBe(9);
    expect(deps.fetchEvents).toHaveBeenCalledTimes(1);
  });

  it("plays on as fast as it is told, and passes over a break", async () => {
    const { made } = player(recorded(12), 12);
    await made.seek(1);

    await made.advance(0.2, 10); // from 9 s to 11 s
    expect([...made.live.state.running.keys()]).toEqual(["actor.generate"]);
    await made.advance(0.1, 1); // the next event is 5 s away: nobody waits so long
    expect([...made.live.state.running.keys()]).toEqual(["actor.learn"]);
  });

  it("shows nothing of a step that it has not reached, however fast it plays", async () => {
    const { made } = player(recorded(60), 60);
    await made.seek(1);

    for (const speed of [1, 10, 60, 240]) {
      for (let tick = 0; tick < 8; tick += 1) {
        await made.advance(0.25, speed);
        const { step, series, gauges, spans, sampleSteps } = made.live.state;
        const loss = series.get("loss")?.get("actor");
        expect(gauges?.step).toBe(step);
        const told = [loss?.last?.step, loss?.steps.at(-1), sampleSteps.at(-1)];
        for (const one of told) expect(one ?? 0).toBeLessThanOrEqual(made.step);
        expect(
          latestOf([loss ? { line: loss, spread: null } : null], made.step)[0]?.step ?? 0,
        ).toBe(loss?.last?.step ?? 0);
        expect(Math.max(...spans.map((span) => span.step ?? 0))).toBeLessThanOrEqual(made.step + 1);
      }
    }
    expect(made.step).toBeGreaterThan(50);
  });

  it("of a long run reads what lies around the step, and the marks", async () => {
    const { made, deps } = player(recorded(4000), 4000);

    await made.seek(2000);

    expect(made.step).toBe(2000);
    expect(deps.fetchEvents).not.toHaveBeenCalled();
    expect(made.live.state.phases.map(({ name }) => name)).toEqual(["rl"]);
    expect(made.live.state.series.get("loss")?.get("actor")?.last?.step).toBe(2000);
  });
});
