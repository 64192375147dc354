import type { RunSeries } from "@/api/types";

export const AXES = ["progress", "learned", "time"] as const;
export type Axis = (typeof AXES)[number];

export interface Line {
  xs: number[];
  ys: (number | null)[];
}

export interface Overlay {
  xs: number[];
  /** One list a line; undefined where it has no point, null where its value is no number. */
  lines: (number | null | undefined)[][];
}

/** A curve by what it is to be seen against. Without a clock or tokens its points have no place. */
export function lineOf(series: RunSeries, axis: Axis): Line {
  const places = placesOf(series, axis);
  const line: Line = { xs: [], ys: [] };
  for (const [index, x] of places.entries()) {
    if (x === null || x === undefined) continue;
    const y = series.mean[index] ?? null;
    // Two buckets at one place, as before the first token: the later one counts.
    if (line.xs.at(-1) === x) line.ys[line.ys.length - 1] = y;
    else {
      line.xs.push(x);
      line.ys.push(y);
    }
  }
  return line;
}

function placesOf(series: RunSeries, axis: Axis): readonly (number | null)[] {
  if (axis === "progress") return series.step;
  return axis === "time" ? series.seconds : series.tokens;
}

export function overlay(lines: readonly Line[]): Overlay {
  const xs = [...new Set(lines.flatMap((line) => line.xs))].toSorted((a, b) => a - b);
  const place = new Map(xs.map((x, index) => [x, index]));
  return {
    xs,
    lines: lines.map((line) => {
      const all = new Array<number | null | undefined>(xs.length).fill(undefined);
      for (const [index, x] of line.xs.entries()) {
        const at = place.get(x);
        if (at !== undefined) all[at] = line.ys[index] ?? null;
      }
      return all;
    }),
  };
}
