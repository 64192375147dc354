import { describe, expect, it, vi } from "vitest";
import type { EventQuery, GaugesPage, RunEvent } from "@/api/types";
import { paceOf } from "@/features/canvas/pace";
import { stageRates, wholeText } from "@/features/canvas/stageText";
import { latestOf } from "@/features/charts/usePlot";
import { edgeFacts } from "@/live/hooks";
import { LiveRun } from "@/live/LiveRun";
import { ReplayPlayer, replayState } from "@/live/ReplayPlayer";
import recordedRun from "../fixtures/recordedRun.json";
import { someGauges } from "../fixtures/runs";

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
});

describe("the player", () => {
  type Kept = GaugesPage["gauges"];

  /** As the service gives them: those that held at an event, and a few after it. */
  function pageOf(kept: Kept, seq: number, last: number): GaugesPage {
    const first = Math.max(
      0,
      kept.findLastIndex((one) => one.seq <= seq),
    );
    const gauges = kept.slice(first, first + 4);
    const has_more = first + 4 < kept.length;
    return { gauges, has_more, last_seq: last, is_recorded: kept.length > 0 };
  }

  /** At the end of each step of `recorded`. */
  const keptOf = (events: RunEvent[]): Kept =>
    events
      .filter(({ type }) => type === "sample")
      .map(({ seq, step }) => ({
        seq,
        attempt: 1,
        step: step ?? 0,
        gauges: someGauges({ step: step ?? 0 }),
      }));

  function player(events: RunEvent[], steps: number, kept = keptOf(events)) {
    const deps = {
      fetchEvents: vi.fn(async (_: string, { after = 0, step, limit = 0 }: EventQuery) => {
        const last = events.at(-1)?.seq ?? 0;
        const from = events.findIndex((one) =>
          typeof step === "number" ? (one.step ?? -1) >= step : one.seq > after,
        );
        const page = from < 0 ? [] : events.slice(from, from + limit);
        return { events: page, last_seq: last, has_more: (page.at(-1)?.seq ?? last) < last };
      }),
      fetchMarks: vi.fn(async () => ({
        seq: events.at(-1)?.seq ?? 0,
        events: events.filter(({ type }) => ["run.state", "phase", "checkpoint"].includes(type)),
      })),
      fetchGauges: vi.fn(async (_: string, seq: number) =>
        pageOf(kept, seq, events.at(-1)?.seq ?? 0),
      ),
    };
    return { made: new ReplayPlayer("r", events.at(-1)?.seq ?? 0, steps, deps), deps };
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

  it("shows no stage as just finished after a jump", async () => {
    const { made } = player(recorded(12), 12);

    for (const step of [4, 9, 2]) {
      await made.seek(step);
      const finished = [...made.live.state.finished.values()];
      expect(finished.filter((seq) => seq > made.live.shownSeq)).toEqual([]);
    }
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
        expect([step, (step ?? 0) - 1]).toContain(gauges?.step); // of a step that has not ended those before
        const told = [loss?.last?.step, loss?.steps.at(-1), sampleSteps.at(-1)];
        for (const one of told) expect(one ?? 0).toBeLessThanOrEqual(made.step);
        expect(
          latestOf([loss ? { line: loss, spread: null, width: 1 } : null], made.step)[0]?.step ?? 0,
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
    expect(deps.fetchEvents).toHaveBeenCalledTimes(1);
    expect(made.live.state.phases.map(({ name }) => name)).toEqual(["rl"]);
    expect(made.live.state.series.get("loss")?.get("actor")?.last?.step).toBe(2000);
  });

  it("shows at each step of a real run what the page showed when it was live", async () => {
    const events = recordedRun.events as unknown as RunEvent[];
    const kept = recordedRun.kept as unknown as Kept;
    const live = new LiveRun("r");
    const { made, deps } = player(events, 4, kept);
    const shown = (run: LiveRun) => ({
      gauges: run.state.gauges,
      edges: Object.keys(run.state.gauges?.edges ?? {}).map((edge) =>
        edgeFacts(run.state.gauges, edge, "actor.generate"),
      ),
      nodes: ["problems", "actor", "length", "probe"].map((node) => [
        paceOf(run, node),
        stageRates(run.state.gauges, node).map(wholeText),
      ]),
    });

    expect(kept.map(({ step }) => step)).toEqual([0, 1, 2, 2, 3, 4, 4, 4]);
    for (const [place, one] of kept.entries()) {
      live.applyEvents(events.filter(({ seq }) => seq <= one.seq));
      live.applyGauges(one.gauges);
      // A step lasts up to the first event of the next one: evaluations after it are part of it.
      if (kept[place + 1]?.step === one.step) continue;
      await made.seek(one.step);
      expect(made.step).toBe(one.step);
      expect(shown(made.live)).toEqual(shown(live));
    }
    expect(made.live.state.gauges?.state).toBe("finished");
    expect(made.live.state.gauges?.nodes?.probe?.evaluation).toBe(true);
    expect(made.live.state.gauges?.stages?.["actor.learn"]?.share).toBeGreaterThan(0);
    expect(deps.fetchGauges.mock.calls.length).toBeLessThan(5);
  });

  it("shows no rates before the first step has ended, nor of a run that kept none", async () => {
    const { made } = player(recorded(12), 12);
    await made.seek(0);
    expect(made.live.state.gauges).toBeNull();
    expect(made.hasGauges).toBe(true);
    expect(made.at).toBe(new Date(AT).toISOString());

    const { made: old, deps } = player(recorded(12), 12, []);
    await old.seek(5);
    await old.seek(9);
    expect(old.step).toBe(9);
    expect(old.live.state.gauges).toBeNull();
    expect(old.hasGauges).toBe(false);
    expect(deps.fetchGauges).toHaveBeenCalledTimes(1);
  });
});
