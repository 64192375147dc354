/** Curves on one axis of steps, thinned to what a screen can show. Pure. */
import type { Curve } from "@/live/curves";
import type { Series } from "@/live/series";

export const MAX_POINTS = 1200;

export interface ChartData {
  steps: number[];
  /** One list a curve, null where it has no value at that step; then as many faint ones. */
  values: (number | null)[][];
}

export function chartData(curves: readonly (Curve | null)[], smoothing: number): ChartData {
  const shown = curves.map((curve) => (curve ? curveOf(curve.line, smoothing) : NOTHING));
  const faint = curves.map((curve) => {
    if (!curve) return NOTHING;
    if (curve.spread) return curveOf(curve.spread, 0);
    return smoothing > 0 ? curveOf(curve.line, 0) : NOTHING;
  });
  return thin(aligned([...shown, ...faint]));
}

interface Points {
  steps: readonly number[];
  values: readonly number[];
}

const NOTHING: Points = { steps: [], values: [] };

function aligned(lines: readonly Points[]): ChartData {
  const steps = merged(lines.map((line) => line.steps));
  const values = lines.map((line) => {
    const found = new Array<number | null>(steps.length).fill(null);
    let at = 0;
    for (let index = 0; index < line.steps.length; index += 1) {
      const step = line.steps[index] ?? 0;
      while ((steps[at] ?? step) < step) at += 1;
      const value = line.values[index] ?? Number.NaN;
      found[at] = Number.isFinite(value) ? value : null;
    }
    return found;
  });
  return { steps, values };
}

function curveOf({ steps, values, width, last }: Series, smoothing: number): Points {
  const isWhole = last === null || (steps.at(-1) ?? 0) >= last.step;
  const allSteps = isWhole ? steps : [...steps, last.step];
  const all = isWhole ? values : [...values, last.value];
  // Two points stand for a bucket, so each weighs as the steps that it stands for.
  return {
    steps: allSteps,
    values: smoothing > 0 ? smoothed(all, smoothing ** Math.max(1, width / 2)) : all,
  };
}
function merged(lists: readonly (readonly number[])[]): number[] {
  const all = new Float64Array(lists.reduce((count, list) => count + list.length, 0));
  let end = 0;
  for (const list of lists) {
    all.set(list, end);
    end += list.length;
  }
  all.sort();
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

/** Keeps the first, last, least and greatest of each bucket, so that peaks survive. */
function thin(data: ChartData): ChartData {
  const count = data.steps.length;
  if (count <= MAX_POINTS) return data;
  const kept = new Set<number>([0, count - 1]);
  const size = (count / MAX_POINTS) * 4;
  for (const line of data.values) {
    for (let start = 0; start < count; start += size) {
      const end = Math.min(count, Math.floor(start + size));
      let least = -1;
      let most = -1;
      for (let index = Math.floor(start); index < end; index += 1) {
        const value = line[index];
        if (value === null || value === undefined) continue;
        if (least < 0 || value < (line[least] ?? value)) least = index;
        if (most < 0 || value > (line[most] ?? value)) most = index;
      }
      if (least >= 0) kept.add(least);
      if (most >= 0) kept.add(most);
    }
  }
  const indices = [...kept].sort((a, b) => a - b);
  return {
    steps: indices.map((index) => data.steps[index] ?? 0),
    values: data.values.map((line) => indices.map((index) => line[index] ?? null)),
  };
}
