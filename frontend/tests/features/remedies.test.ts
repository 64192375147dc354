import { describe, expect, it } from "vitest";
import { remedyOf, saved } from "@/features/runs/live/remedies";
import type { StageSpan } from "@/live/state";
import { catalog, smallLoop } from "../fixtures/loops";

/** A stage of 6 s in a step of 10 s. */
const bound = (stage: string) => ({
  stage,
  node: stage.split(".")[0] ?? "",
  seconds: 6,
  share: 0.6,
  stepSeconds: 10,
  idle: null,
});

function remedy(
  stage: string,
  change: (loop: ReturnType<typeof smallLoop>) => void = () => {},
  read: (node: string, metric: string) => number | null = () => null,
  spans: readonly StageSpan[] = [],
) {
  const loop = smallLoop();
  change(loop);
  return remedyOf(catalog, loop, bound(stage), { spans, read });
}

const span = (pool: string, start: number, end: number): StageSpan => ({
  ...{ stage: `${pool}.work`, node: pool, phase: "rl", step: 1, pool },
  ...{ start: start * 1000, end: end * 1000, samples: 0, tokens: 0 },
  ...{ starved: 0, blocked: 0, ranks: [], evaluation: null },
});

describe("a run that writing holds back", () => {
  const long = (actor: number) => (node: string, metric: string) =>
    node === "actor" && metric === "rollout/length" ? actor : null;

  it("writes three quarters of the tokens: 10 − 0.25 · 6 = 8.5 s", () => {
    expect(remedy("actor.generate", () => {}, long(230))).toMatchObject({
      bound: "writing",
      path: "nodes.actor.rollout.max_new_tokens",
      fix: { value: 192, stepSeconds: 8.5 }, // of the 256 that nobody set
    });
  });

  it("is promised nothing where texts end by themselves", () => {
    expect(remedy("actor.generate", () => {}, long(100))).toBeNull();
    expect(remedy("actor.generate")).toBeNull();
  });
});

describe("a run that learning holds back", () => {
  it("keeps its activations: 10 − 0.25 · 6 = 8.5 s", () => {
    const found = remedy("actor.learn", (loop) => {
      loop.nodes.actor = { ...loop.nodes.actor, kind: "actor" };
      loop.nodes.actor.training = { gradient_checkpointing: true };
    });

    expect(found).toMatchObject({
      bound: "learning",
      path: "nodes.actor.training.gradient_checkpointing",
      fix: { value: false, stepSeconds: 8.5 },
    });
  });

  it("goes over its rows once less: 10 − 6 / 3 = 8 s", () => {
    const found = remedy("actor.learn", (loop) => {
      loop.nodes.actor = { ...loop.nodes.actor, kind: "actor", training: { epochs: 3 } };
    });

    expect(found?.path).toBe("nodes.actor.training.epochs");
    expect(found?.fix).toEqual({ value: 2, stepSeconds: 8 });
  });

  it("is promised nothing where it learns its rows once and keeps what it computes", () => {
    expect(remedy("actor.learn")).toBeNull();
  });
});

describe("a run that judging holds back", () => {
  it("asks its service for twice as much at once: 10 − 6 / 2 = 7 s", () => {
    const found = remedy("exact.score", (loop) => {
      loop.nodes.exact = { kind: "reward", source: { type: "remote", url: "http://judge" } };
    });

    expect(found).toMatchObject({
      bound: "judging",
      path: "nodes.exact.source.concurrency",
      fix: { value: 16, stepSeconds: 7 }, // of the 8 that nobody set
    });
  });

  it("has a field to look at, and no promise, where no setting helps", () => {
    expect(remedy("exact.score")).toMatchObject({ path: "nodes.exact.source", fix: null });
  });

  it("says what to write where the reward is code", () => {
    const found = remedy("exact.score", (loop) => {
      const source = { type: "python", code: "def reward(prompts, completions): ..." };
      loop.nodes.exact = { kind: "reward", source };
    });

    expect(found).toMatchObject({ path: "nodes.exact.source.code", fix: null });
    expect(found?.reason).toContain("above `def reward`");
  });
});

it("a run that data holds back has a field to look at, and no promise", () => {
  expect(remedy("problems.load")).toMatchObject({
    bound: "data",
    path: "nodes.problems.source",
    fix: null,
  });
});

describe("a run whose pools wait for each other", () => {
  const spans = [span("writers", 0, 6), span("learners", 6, 10)];

  it("may write a step ahead: the pool that works 6 of 10 s makes the step", () => {
    expect(remedy("actor.sync", () => {}, undefined, spans)).toMatchObject({
      bound: "late rows",
      path: "schedule.max_staleness",
      fix: { value: 1, stepSeconds: 6 },
    });
  });

  it("is promised nothing where it writes ahead already, or has one pool", () => {
    const ahead = (loop: ReturnType<typeof smallLoop>) => {
      loop.rest.schedule = { max_staleness: 1 };
    };
    expect(remedy("actor.sync", ahead, undefined, spans)).toBeNull();
    expect(remedy("actor.sync", () => {}, undefined, [span("main", 0, 10)])).toBeNull();
  });
});

it("what a change saves follows from the change", () => {
  const known = (change: "becomes" | "times" | "less", amount: number, saves = 0) => ({
    ...{ when: "stage" as const, bound: "", verbs: [], label: "", reason: "", path: "" },
    ...{ change, amount, saves, only: null, metric: null, reach: 0 },
  });
  expect(saved(known("times", 0.75), 100)).toBe(0.25);
  expect(saved(known("times", 2), 8)).toBe(0.5);
  expect(saved(known("less", 1), 4)).toBe(0.25);
  expect(saved(known("becomes", 0, 0.3), undefined)).toBe(0.3);
});
