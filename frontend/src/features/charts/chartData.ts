/** Curves of several nodes on one axis of steps, thinned to what a screen can show. Pure. */
import type { Series } from "@/live/series";

export const MAX_POINTS = 1200;

export interface ChartData {
  steps: number[];
  /** One list a node, null where it has no value at that step. */
  values: (number | null)[][];
}

export function chartData(series: readonly Series[], smoothing: number): ChartData {
  const steps = [...new Set(series.flatMap((one) => one.steps))].sort((a, b) => a - b);
  const at = new Map(steps.map((step, index) => [step, index]));
  const values = series.map((one) => {
    const line = new Array<number | null>(steps.length).fill(null);
    const smooth = smoothing > 0 ? smoothed(one.values, smoothing) : one.values;
    for (const [index, step] of one.steps.entries()) {
      const value = smooth[index] ?? Number.NaN;
      line[at.get(step) ?? 0] = Number.isFinite(value) ? value : null;
    }
    return line;
  });
  return thin({ steps, values });
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
