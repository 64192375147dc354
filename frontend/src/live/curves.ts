/**
 * Curves as charts draw them. Of a run whose events are all in the page they are in memory; of a longer one the
 * service gives them in buckets, and the newest points come behind those from the stream.
 */
import type { RunSeries } from "@/api/types";
import type { CurveName } from "@/catalog/charts";
import { lowerBound, type Series } from "./series";
import type { LiveState } from "./state";

export interface Curve {
  /** What is drawn: every point, or the mean of each bucket. */
  line: Series;
  /** What stands faint behind it: least and greatest of each bucket; null: the points themselves. */
  spread: Series | null;
}

export const BUCKETS = 400;

export function curveKey({ node, metric }: CurveName): string {
  return `${node}.${metric}`;
}

export function curvesOf(
  state: LiveState,
  names: readonly CurveName[],
  fetched: ReadonlyMap<string, Curve> | null,
): (Curve | null)[] {
  return names.map((name) => {
    const newest = state.series.get(name.metric)?.get(name.node);
    const before = fetched?.get(curveKey(name));
    if (before) return newest ? withTail(before, newest) : before;
    return newest ? { line: newest, spread: null } : null;
  });
}

export function bucketCurves(series: readonly RunSeries[], width: number): Map<string, Curve> {
  return new Map(series.map((one) => [curveKey(one), bucketCurve(one, width)]));
}

function bucketCurve(series: RunSeries, width: number): Curve {
  const line = {
    ...empty(2 * width), // one point stands for the steps that otherwise have two
    steps: series.step,
    values: series.mean.map((value) => value ?? Number.NaN),
  };
  const value = series.last.at(-1);
  const step = series.step.at(-1);
  if (step !== undefined && typeof value === "number") line.last = { step, value };
  return { line, spread: width > 1 ? spreadOf(series, width) : null };
}

function spreadOf(series: RunSeries, width: number): Series {
  const steps: number[] = [];
  const values: number[] = [];
  for (const [place, step] of series.step.entries()) {
    const [low, high] = [series.min[place] ?? Number.NaN, series.max[place] ?? Number.NaN];
    const before = steps.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (step - width / 2 > before) {
      steps.push(step - width / 2);
      values.push(low);
    }
    steps.push(step);
    values.push(high);
  }
  return { ...empty(width), steps, values };
}

function withTail(curve: Curve, newest: Series): Curve {
  const end = curve.line.last?.step ?? curve.line.steps.at(-1) ?? Number.NEGATIVE_INFINITY;
  const from = lowerBound(newest.steps, end + 1);
  if (from >= newest.steps.length) return curve;
  return {
    line: {
      ...curve.line,
      steps: [...curve.line.steps, ...newest.steps.slice(from)],
      values: [...curve.line.values, ...newest.values.slice(from)],
      last: newest.last,
      version: newest.version,
    },
    spread: curve.spread,
  };
}

function empty(width: number): Series {
  return { steps: [], values: [], attempt: 0, width, last: null, version: 0 };
}
