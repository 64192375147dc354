/**
 * Curves as charts draw them. Of a run whose events are all in the page they are in memory; of a longer one the
 * service gives them in buckets, and the newest points come behind those from the stream.
 */
import type { RunSeries } from "@/api/types";
import type { CurveName } from "@/catalog/charts";
import { lowerBound, type Points, type Series } from "./series";
import type { LiveState } from "./state";

export interface Curve {
  /** What is drawn: every point, or the mean of each bucket. */
  line: Points & Pick<Series, "last" | "version">;
  /** What stands faint behind it: least and greatest of each bucket; null: the points themselves. */
  spread: Points | null;
  /** How many steps a point of the line stands for. */
  width: number;
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
    return newest ? { line: newest, spread: null, width: 1 } : null;
  });
}

export function bucketCurves(series: readonly RunSeries[], width: number): Map<string, Curve> {
  return new Map(series.map((one) => [curveKey(one), bucketCurve(one, width)]));
}

function bucketCurve(series: RunSeries, width: number): Curve {
  const value = series.last.at(-1);
  const step = series.step.at(-1);
  const line = {
    steps: series.step,
    values: series.mean.map((mean) => mean ?? Number.NaN),
    last: step !== undefined && typeof value === "number" ? { step, value } : null,
    version: 0,
  };
  return { line, spread: width > 1 ? spreadOf(series, width) : null, width };
}

function spreadOf(series: RunSeries, width: number): Points {
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
  return { steps, values };
}

function withTail(curve: Curve, newest: Series): Curve {
  const { line } = curve;
  const end = line.last?.step ?? line.steps.at(-1) ?? Number.NEGATIVE_INFINITY;
  const from = lowerBound(newest.steps, end + 1);
  if (from >= newest.steps.length) return curve;
  const { last, version } = newest;
  const steps = [...line.steps, ...newest.steps.slice(from)];
  const values = [...line.values, ...newest.values.slice(from)];
  return { ...curve, line: { steps, values, last, version } };
}
