/** Curves on one axis of steps. Pure. */
import type { Curve } from "@/live/curves";
import type { Points } from "@/live/series";

export interface ChartData {
  steps: number[];
  /** One list a curve, null where it has no value at that step; then as many faint ones, and as many of the parent. */
  values: (number | null)[][];
}

const NOTHING: Points = { steps: [], values: [] };

/**
 * @param parents the same curves of the run that this one was forked from, null where there is none
 */
export function chartData(
  curves: readonly (Curve | null)[],
  smoothing: number,
  parents: readonly (Curve | null)[] = [],
): ChartData {
  const shown = curves.map((curve) => (curve ? lineOf(curve, smoothing) : NOTHING));
  const faint = curves.map((curve) => {
    if (!curve) return NOTHING;
    return curve.spread ?? (smoothing > 0 ? lineOf(curve, 0) : NOTHING);
  });
  const before = curves.map((_, place) => {
    const parent = parents[place];
    return parent ? lineOf(parent, smoothing) : NOTHING;
  });
  const lines = [...shown, ...faint, ...before];
  const steps = merged(lines.map((line) => line.steps));
  const values = lines.map((line) => {
    const known = new Array<number | null>(steps.length).fill(null);
    let at = 0;
    for (const [index, step] of line.steps.entries()) {
      while ((steps[at] ?? step) < step) at += 1;
      const value = line.values[index] ?? Number.NaN;
      known[at] = Number.isFinite(value) ? value : null;
    }
    return known;
  });
  return { steps, values };
}

/** A point weighs as the steps that it stands for. */
function lineOf({ line, width }: Curve, smoothing: number): Points {
  const { steps, values } = line;
  return { steps, values: smoothing > 0 ? smoothed(values, smoothing ** width) : values };
}

function merged(lists: readonly (readonly number[])[]): number[] {
  const all = Float64Array.from(lists.flat()).sort();
  const steps: number[] = [];
  for (const step of all) if (step !== steps.at(-1)) steps.push(step);
  return steps;
}

/** Exponential moving average without the bias of its start. */
export function smoothed(values: readonly number[], factor: number): number[] {
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return Number.NaN;
    sum = factor * sum + (1 - factor) * value;
    weight = factor * weight + (1 - factor);
    return sum / weight;
  });
}
