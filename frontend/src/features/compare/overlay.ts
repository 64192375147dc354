import uPlot from "uplot";
import type { RunSeries } from "@/api/types";

export const AXES = ["progress", "learned", "time"] as const;
export type Axis = (typeof AXES)[number];

/** A curve by what it is to be seen against. Without a clock or tokens its points have no place. */
export function lineOf(series: RunSeries, axis: Axis): uPlot.AlignedData {
  const xs: number[] = [];
  const ys: (number | null)[] = [];
  for (const [index, x] of placesOf(series, axis).entries()) {
    if (x === null || x === undefined) continue;
    // Two buckets at one place, as before the first token: the later one counts.
    const at = xs.at(-1) === x ? xs.length - 1 : xs.length;
    xs[at] = x;
    ys[at] = series.mean[index] ?? null;
  }
  return [xs, ys];
}

function placesOf(series: RunSeries, axis: Axis): readonly (number | null)[] {
  if (axis === "progress") return series.step;
  return axis === "time" ? series.seconds : series.tokens;
}

/** All on one axis; undefined where a line has no point, null where its value is no number. */
export function overlay(lines: uPlot.AlignedData[]): uPlot.AlignedData {
  return lines.length === 0 ? [[]] : uPlot.join(lines);
}
