/**
 * One curve: values by step, in order. Where a step was done twice, the later attempt counts.
 *
 * A curve keeps its newest points; the service has those before them, in buckets. Mutable on purpose: long runs
 * append thousands of times.
 */
export interface Points {
  steps: readonly number[];
  values: readonly number[];
}

export interface Series extends Points {
  steps: number[];
  values: number[];
  attempt: number;
  last: { step: number; value: number } | null;
  /** Changes with every point. */
  version: number;
}

export const MAX_KEPT = 2048;

export function createSeries(): Series {
  return { steps: [], values: [], attempt: 0, last: null, version: 0 };
}

/** True where the oldest points went to make room. */
export function addPoint(series: Series, step: number, value: number, attempt: number): boolean {
  const { steps, values } = series;
  if (attempt > series.attempt) {
    cutFrom(series, step);
    series.attempt = attempt;
  }
  series.version += 1;
  if (series.last === null || step >= series.last.step) series.last = { step, value };
  const index = lowerBound(steps, step);
  const isKnown = steps[index] === step;
  steps.splice(index, isKnown ? 1 : 0, step);
  values.splice(index, isKnown ? 1 : 0, value);
  const surplus = steps.length - MAX_KEPT;
  if (surplus < MAX_KEPT / 4) return false;
  steps.splice(0, surplus);
  values.splice(0, surplus);
  return true;
}

function cutFrom(series: Series, step: number): void {
  const { steps, values } = series;
  steps.length = values.length = lowerBound(steps, step);
  const [lastStep, lastValue] = [steps.at(-1), values.at(-1)];
  series.last = lastStep === undefined ? null : { step: lastStep, value: lastValue ?? Number.NaN };
}

/** First position whose step is not below `step`. */
export function lowerBound(steps: readonly number[], step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] ?? 0) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}
