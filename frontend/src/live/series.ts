/**
 * One curve: values by step, in order. Where a step was done twice, the later attempt counts.
 *
 * A curve keeps at most `MAX_KEPT` points however long a run goes on: steps are gathered in buckets, of a
 * bucket the least and the greatest value stay, and when there are too many buckets each becomes twice as
 * wide. The newest value is always known as it is. Mutable on purpose: long runs append thousands of times.
 */
export interface Series {
  steps: number[];
  values: number[];
  attempt: number;
  /** Steps in a bucket. */
  width: number;
  last: { step: number; value: number } | null;
  /** Changes with every point. */
  version: number;
}

export const MAX_KEPT = 2048;

export function createSeries(): Series {
  return { steps: [], values: [], attempt: 0, width: 1, last: null, version: 0 };
}

export function addPoint(series: Series, step: number, value: number, attempt: number): void {
  if (attempt > series.attempt) {
    cutFrom(series, step);
    series.attempt = attempt;
  }
  series.version += 1;
  if (series.last === null || step >= series.last.step) series.last = { step, value };
  if (series.width === 1) put(series, step, value);
  else gather(series, step, value);
  while (series.steps.length > MAX_KEPT) widen(series);
}

function put(series: Series, step: number, value: number): void {
  const end = series.steps.at(-1);
  if (end === undefined || step > end) {
    series.steps.push(step);
    series.values.push(value);
    return;
  }
  const index = lowerBound(series.steps, step);
  const isKnown = series.steps[index] === step;
  series.steps.splice(index, isKnown ? 1 : 0, step);
  series.values.splice(index, isKnown ? 1 : 0, value);
}

function gather(series: Series, step: number, value: number): void {
  const begin = Math.floor(step / series.width) * series.width;
  const from = lowerBound(series.steps, begin);
  let to = from;
  while (to < series.steps.length && (series.steps[to] ?? 0) < begin + series.width) to += 1;
  const points = [{ step, value }];
  for (let index = from; index < to; index += 1) {
    const known = { step: series.steps[index] ?? 0, value: series.values[index] ?? Number.NaN };
    if (known.step !== step) points.push(known);
  }
  const kept = points.length <= 2 ? points : extremes(points);
  kept.sort((a, b) => a.step - b.step);
  series.steps.splice(from, to - from, ...kept.map((point) => point.step));
  series.values.splice(from, to - from, ...kept.map((point) => point.value));
}

function extremes(points: { step: number; value: number }[]): { step: number; value: number }[] {
  const finite = points.filter((point) => Number.isFinite(point.value));
  if (finite.length <= 2) return finite.length > 0 ? finite : points.slice(0, 1);
  const sorted = finite.toSorted((a, b) => a.value - b.value);
  return [sorted[0], sorted.at(-1)].filter((point) => point !== undefined);
}

function widen(series: Series): void {
  const { steps, values } = series;
  series.width *= 2;
  series.steps = [];
  series.values = [];
  for (const [index, step] of steps.entries()) gather(series, step, values[index] ?? Number.NaN);
}

function cutFrom(series: Series, step: number): void {
  const index = lowerBound(series.steps, step);
  series.steps.length = index;
  series.values.length = index;
  series.last =
    index === 0
      ? null
      : { step: series.steps[index - 1] ?? 0, value: series.values[index - 1] ?? Number.NaN };
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
