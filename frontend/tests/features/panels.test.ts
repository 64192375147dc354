import { describe, expect, it } from "vitest";
import type { Estimate, GpuEstimate } from "@/api/types";
import { orderMetrics, tellingMetrics } from "@/catalog/metrics";
import { presetOf } from "@/catalog/presets";
import { readSchema } from "@/catalog/schema";
import { countProblems, indexProblems, problemsAt, worstSeverity } from "@/document/problems";
import { chartData, smoothed } from "@/features/charts/chartData";
import { sampleText } from "@/features/samples/sampleText";
import { entryText, phaseLength } from "@/features/schedule/phaseText";
import {
  idleShare,
  lastSeconds,
  originOf,
  overlapShare,
  stepShares,
  tickStep,
  timelineRows,
  zoomRange,
} from "@/features/timeline/rows";
import { yamlPlace } from "@/features/yaml/YamlPanel";
import { bytesIn, groupGpus, groupName, partsIn } from "@/lib/estimate";
import { addPoint, createSeries } from "@/live/series";
import type { StageSpan } from "@/live/state";
import { smallestChange } from "@/ui/code/editor";
import { catalog } from "../fixtures/loops";
import { aProblem, aStage, someGauges } from "../fixtures/runs";

const gpu = (index: number, bytes: number): GpuEstimate => ({
  pool: "main",
  index,
  capacity_bytes: 100,
  usable_bytes: 90,
  peak_bytes: bytes,
  peak_stage: "a.learn",
  fits: bytes <= 90,
  parts: [
    { node: "a", part: "weights", bytes: bytes - 10, stages: ["a.learn", "a.generate"] },
    { node: "a", part: "gradients", bytes: 10, stages: ["a.learn"] },
  ],
});

describe("memory", () => {
  it("equal GPUs share a line", () => {
    const estimate = { gpus: [gpu(0, 50), gpu(1, 50), gpu(2, 60)] } as Estimate;

    expect(groupGpus(estimate).map(groupName)).toEqual(["main 0–1", "main 2"]);
  });

  it("a moment has only what is resident then", () => {
    expect(bytesIn(gpu(0, 50), "a.generate")).toBe(40);
    expect(partsIn(gpu(0, 50), "a.learn").map((part) => part.part)).toEqual([
      "weights",
      "gradients",
    ]);
  });
});

describe("problems", () => {
  const list = [
    aProblem({ node: "a", field: "rollout.top_p" }),
    aProblem({ node: "a", field: "rollout", severity: "warning" }),
    aProblem({ field: "schedule.phases.0", severity: "hint" }),
  ];

  it("are found by node and counted", () => {
    const index = indexProblems(list);

    expect(index.byNode.get("a")).toHaveLength(2);
    expect(index.loop).toHaveLength(1);
    expect(index.total).toEqual({ error: 1, warning: 1, hint: 1 });
    expect(indexProblems(list)).toBe(index);
  });

  it("are found at a field, or below it", () => {
    expect(problemsAt(list, "rollout", true)).toHaveLength(1);
    expect(problemsAt(list, "rollout", false)).toHaveLength(2);
  });

  it("the worst one stands for all", () => {
    expect(worstSeverity(list)).toBe("error");
    expect(worstSeverity([])).toBeNull();
    expect(countProblems([])).toEqual({ error: 0, warning: 0, hint: 0 });
  });
});

describe("schedule", () => {
  it.each([
    [{ steps: 1 }, "1 step"],
    [{ steps: 2000 }, "2,000 steps"],
    [{ epochs: 3 }, "3 epochs"],
    [{ epochs: { of: "gold", count: 2 } }, "2 epochs of gold"],
    [{ until: ["pool.full", "other.full"] }, "until pool.full, other.full"],
    [{}, "no end yet"],
  ])("%j lasts %s", (phase, text) => {
    expect(phaseLength(phase)).toBe(text);
  });

  it("a trigger is a sentence", () => {
    const entry = {
      when: { metric: "probe.accuracy", falls_by: 0.1, for: 3 },
      do: { next_phase: true },
    };

    expect(entryText(entry)).toBe("probe.accuracy falls by 0.1 for 3 → next phase");
    expect(entryText({ path: "edges.x.weight", from: 1, to: 0 })).toBe("edges.x.weight: 1 → 0");
  });
});

describe("charts", () => {
  const series = (steps: number[], values: number[]) => {
    const made = createSeries();
    for (const [index, step] of steps.entries()) addPoint(made, step, values[index] ?? 0, 1);
    return { line: made, spread: null, width: 1 };
  };

  it("curves of several nodes share the steps", () => {
    const data = chartData([series([1, 2], [10, 20]), series([2, 3], [5, Number.NaN])], 0);

    expect(data).toEqual({
      steps: [1, 2, 3],
      values: [[10, 20, null], [null, 5, null], ...new Array(4).fill([null, null, null])],
    });
  });

  it("smoothing has no bias at the start", () => {
    expect(smoothed([4, 4, 4], 0.9)).toEqual([4, 4, 4].map((value) => expect.closeTo(value, 9)));
  });

  it("of a run what a probe measures says most", () => {
    const paths = ["actor.reward/mean", "judge.reward/mean", "probe.accuracy", "actor.loss"];

    expect(tellingMetrics(catalog, paths, 2)).toEqual(["probe.accuracy", "actor.reward/mean"]);
    const learner = ["dpo.accuracy", "dpo.loss", "dpo.grad_norm"];
    expect(tellingMetrics(catalog, [...learner, "held.accuracy"], 1)).toEqual(["held.accuracy"]);
    expect(tellingMetrics(catalog, ["exam.win_rate.actor", "actor.grad_norm"], 1)).toEqual([
      "exam.win_rate.actor",
    ]);
  });

  it("what one looks at first comes first", () => {
    expect(orderMetrics(catalog, ["grad_norm", "zzz", "loss", "reward/mean"])).toEqual([
      "reward/mean",
      "loss",
      "grad_norm",
      "zzz",
    ]);
  });
});

describe("timeline", () => {
  const span = (
    stage: string,
    step: number,
    start: number,
    end: number | null,
    pool: string | null = "main",
  ): StageSpan => ({
    stage,
    node: stage.split(".")[0] ?? "",
    phase: "p",
    step,
    pool,
    start,
    end,
    samples: 0,
    tokens: 0,
    starved: 0,
    blocked: 0,
    ranks: [],
    evaluation: null,
  });
  const spans = [
    span("b.learn", 1, 0, 1000),
    span("a.generate", 1, 1000, 4000),
    span("b.learn", 2, 4000, null),
  ];

  it("a row a stage, in the order of the loop", () => {
    expect(
      timelineRows(spans, ["a", "b"], "byStage").map(({ label, bars }) => [label, bars.length]),
    ).toEqual([
      ["a.generate", 1],
      ["b.learn", 2],
    ]);
  });

  it("a step is as long as it is told everywhere, and its stages add up to it", () => {
    const gauges = someGauges({
      step_seconds: 4,
      window_steps: 8,
      stages: {
        "b.learn": aStage({ share: 0.25 }),
        "a.generate": aStage({ share: 0.75 }),
        "probe.evaluate": aStage({ share: 0.9, evaluation: true }),
      },
    });

    expect(stepShares(gauges, spans)).toEqual({
      step: 4,
      stages: [
        { name: "a.generate", seconds: 3 },
        { name: "b.learn", seconds: 1 },
      ],
      pools: [],
    });
    expect(stepShares(null, spans).step).toBeNull();
  });

  it("steps that overlap are told pool by pool, without what evaluations took", () => {
    const overlapping = [1, 2, 3, 4, 5].flatMap((step) => [
      span("a.generate", step, step * 1000, step * 1000 + 500, "write"),
      span("c.score", step, step * 1000 + 500, step * 1000 + 750, null),
      { ...span("c.score", step, 0, 9000, null), evaluation: "probe" },
      span("a.learn", step, step * 1000 + 1000, step * 1000 + 1875, "train"),
    ]);

    const shares = stepShares(someGauges({ step_seconds: 1, window_steps: 3 }), overlapping);

    expect(shares.step).toBe(1);
    expect(shares.pools).toEqual([
      { name: "train", seconds: 0.875 },
      { name: "write", seconds: 0.5 },
      { name: "driver", seconds: 0.25 },
    ]);
  });

  const side = [
    span("a.generate", 1, 0, 600, "write"),
    span("a.learn", 1, 400, 1000, "train"),
    span("c.score", 1, 400, 500, null),
  ];

  it("a row a pool, the driver last, and what an evaluation is made of no row", () => {
    const rows = timelineRows([...side, span("p.evaluate", 1, 0, 9, null)], ["a"], "byPool");

    expect(rows.map(({ label, bars }) => [label, bars.length])).toEqual([
      ["write", 1],
      ["train", 1],
      ["driver", 1],
    ]);
  });

  it("pools overlap in as much of the time as two of them work at once", () => {
    const rows = timelineRows(side, ["a"], "byPool");

    // both from 400 to 600, of 1000
    expect(overlapShare(rows, { start: 0, end: 1000 }, 1000)).toBeCloseTo(0.2);
    expect(overlapShare(rows, { start: 0, end: 400 }, 1000)).toBe(0);
    expect(overlapShare(rows.slice(0, 1), { start: 0, end: 1000 }, 1000)).toBeNull();
    expect(rows.map((row) => idleShare(row, { start: 0, end: 1000 }, 1000))).toEqual([
      expect.closeTo(0.4),
      expect.closeTo(0.4),
      expect.closeTo(0.9),
    ]);
  });

  it("a rank is idle from where it was done until the others were", () => {
    const shared = { ...span("a.learn", 1, 0, 1000, "train"), ranks: [1, 0.25] };

    const rows = timelineRows([shared], ["a"], "byRank");

    expect(rows.map(({ note, bars }) => [note, bars[0]?.end])).toEqual([
      ["rank 0", 1000],
      ["rank 1", 250],
    ]);
  });

  it("the window ends now and begins where the run began at the earliest", () => {
    expect(lastSeconds(spans, 2, 5000)).toEqual({ start: 3000, end: 5000 });
    expect(lastSeconds(spans, Number.POSITIVE_INFINITY, 5000)).toEqual({ start: 0, end: 5000 });
  });

  it("zooming keeps the point under the pointer", () => {
    expect(zoomRange({ start: 0, end: 100 }, 25, 0.5)).toEqual({ start: 12.5, end: 62.5 });
    expect(tickStep({ start: 0, end: 60_000 }, 6)).toBe(10_000);
  });
});

describe("text", () => {
  it("two texts differ in one piece", () => {
    expect(smallestChange("lr: 1.0\nx: 2\n", "lr: 3.0\nx: 2\n")).toEqual({
      from: 4,
      to: 5,
      insert: "3",
    });
    expect(smallestChange("aa", "aaa")).toEqual({ from: 2, to: 2, insert: "a" });
    expect(smallestChange("same", "same")).toBeNull();
  });

  it("a node is found in the text by its indentation", () => {
    const text = "nodes:\n  a:\n    kind: x\n  b:\n    rollout:\n      top_p: 1\nedges: []\n";

    expect(yamlPlace(text, "b", "rollout.top_p")).toEqual({ line: 6, column: 7 });
    expect(yamlPlace(text, "b", "missing")).toEqual({ line: 4, column: 3 });
    expect(yamlPlace(text, null, "edges.3")).toEqual({ line: 7, column: 1 });
    expect(yamlPlace("", "b", null)).toBeNull();
  });

  it("chats are written out", () => {
    expect(
      sampleText([
        { role: "user", content: "hi" },
        { role: "assistant", content: "yes" },
      ]),
    ).toBe("user: hi\nassistant: yes");
    expect(sampleText(null)).toBe("");
  });

  it("a preset's defaults stand for fields that are not set", () => {
    const [port, list] = Object.entries(catalog.algorithms)[0] ?? ["", []];
    const [preset] = list;

    const object = (marks: object) => {
      const schema = { type: "object", properties: { name: { type: "string", ...marks } } };
      const field = readSchema(schema);
      if (field.shape !== "object") throw new Error("an object is an object");
      return field;
    };
    const value = { name: preset?.name ?? "" };

    expect(presetOf(catalog, object({ "x-choices": "algorithms" }), ["any", port], value)).toBe(
      preset,
    );
    expect(presetOf(catalog, object({}), ["any", port], value)).toBeNull();
  });
});

it("times of the timeline count from the start of the run, not from what is loaded of it", () => {
  const started = "2026-01-01T00:00:00Z";
  const late = { start: Date.parse(started) + 200_000 } as StageSpan;

  expect(originOf(started, [late], 0)).toBe(Date.parse(started));
  expect(originOf(null, [late], 0)).toBe(late.start);
  expect(originOf(null, [], 7)).toBe(7);
});
