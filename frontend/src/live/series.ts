/**
 * One curve: values by step, in order. Where a step was done twice, the later attempt counts.
 * Mutable on purpose: long runs append thousands of times.
 */
export interface Series {
  steps: number[];
  values: number[];
  attempt: number;
}

export function createSeries(): Series {
  return { steps: [], values: [], attempt: 0 };
}

export function addPoint(series: Series, step: number, value: number, attempt: number): void {
  if (attempt > series.attempt) {
    cutFrom(series, step);
    series.attempt = attempt;
  }
  const last = series.steps.at(-1);
  if (last === undefined || step > last) {
    series.steps.push(step);
    series.values.push(value);
    return;
  }
  const index = lowerBound(series.steps, step);
  if (series.steps[index] === step) {
    series.values[index] = value;
    return;
  }
  series.steps.splice(index, 0, step);
  series.values.splice(index, 0, value);
}

function cutFrom(series: Series, step: number): void {
  const index = lowerBound(series.steps, step);
  series.steps.length = index;
  series.values.length = index;
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
