import { describe, expect, it } from "vitest";
import type { RunSeries } from "@/api/types";
import { planCharts } from "@/catalog/charts";
import { chartData } from "@/features/charts/chartData";
import { bucketCurves, curvesOf } from "@/live/curves";
import { addPoint, createSeries } from "@/live/series";
import { LiveState } from "@/live/state";
import { catalog } from "../fixtures/loops";

const NAME = { node: "a", metric: "loss" };

const series = (change: Partial<RunSeries> = {}): RunSeries => ({
  ...NAME,
  step: [1, 255, 511],
  count: [1, 254, 256],
  min: [5, 2, 1],
  max: [5, 4, 3],
  mean: [5, 3, 2],
  last: [5, 2.5, 1.5],
  seconds: [1, 2, 3],
  tokens: [0, 0, 0],
  ...change,
});

function stateWith(steps: readonly number[]) {
  const state = new LiveState();
  const newest = createSeries();
  for (const step of steps) addPoint(newest, step, step, 1);
  state.series.set("loss", new Map([["a", newest]]));
  return state;
}

describe("curves in buckets", () => {
  it("are drawn by their means, with the least and greatest behind them", () => {
    const [curve] = curvesOf(new LiveState(), [NAME], bucketCurves([series()], 256));

    expect(curve?.line.steps).toEqual([1, 255, 511]);
    expect(curve?.line.values).toEqual([5, 3, 2]);
    expect(curve?.line.last).toEqual({ step: 511, value: 1.5 });
    expect(Math.max(...(curve?.spread?.values ?? []))).toBe(5);
    expect(Math.min(...(curve?.spread?.values ?? []))).toBe(1);
  });

  it("go on with what came from the stream since, no step twice", () => {
    const state = stateWith([510, 511, 512, 513]);

    const [curve] = curvesOf(state, [NAME], bucketCurves([series()], 256));

    expect(curve?.line.steps).toEqual([1, 255, 511, 512, 513]);
    expect(curve?.line.last).toEqual({ step: 513, value: 513 });
  });

  it("a bucket without a number is a gap", () => {
    const nothing = {
      min: [5, null, 1],
      max: [5, null, 3],
      mean: [5, null, 2],
      last: [5, null, 1],
    };

    const data = chartData(
      curvesOf(new LiveState(), [NAME], bucketCurves([series(nothing)], 256)),
      0,
    );

    expect(data.values[0]?.[data.steps.indexOf(255)]).toBeNull();
  });
});

describe("charts of a loop", () => {
  const known = new Map([
    ["reward/mean", ["generator", "verifier"]],
    ["judge.agreement", ["exam"]],
    ["accuracy", ["probe"]],
    ["kl", ["generator"]],
    ["grad_norm", ["generator"]],
  ]);

  it("put what the generator and the verifier reach on one axis", () => {
    const [first] = planCharts(catalog, known, new Set(["rewards"]));

    expect(first?.info.title).toBe("Accuracy");
    expect(first?.curves.map(({ node }) => node)).toEqual(["probe", "exam"]);
  });

  it("are chosen by what is learned; the others wait to be asked for", () => {
    const titles = (ports: string[]) =>
      planCharts(catalog, known, new Set(ports))
        .filter(({ isMain }) => isMain)
        .map(({ name }) => name);

    expect(titles(["rewards"])).toEqual(["accuracy", "reward", "kl"]);
    expect(titles(["pairs"])).toEqual(["accuracy"]);
    const rest = planCharts(catalog, known, new Set(["pairs"])).filter(({ isMain }) => !isMain);
    expect(rest.map(({ name }) => name)).toContain("grad_norm");
  });
});
