/** The timeline's rows and bars: a row for each stage, pool by pool in the order of the loop. Pure. */
import type { StageSpan } from "@/live/state";

export interface TimelineRow {
  stage: string;
  node: string;
  /** Where it runs; null: in the driver. */
  pool: string | null;
  /** Whether it is the first of its pool, where a run has more than one. */
  opens: boolean;
  spans: StageSpan[];
}

/** What the timeline calls the place of stages without a pool. */
export const DRIVER = "driver";

export function timelineRows(spans: readonly StageSpan[], nodes: readonly string[]): TimelineRow[] {
  const rows = new Map<string, TimelineRow>();
  for (const span of spans) {
    let row = rows.get(span.stage);
    if (!row) {
      row = { stage: span.stage, node: span.node, pool: span.pool, opens: false, spans: [] };
      rows.set(span.stage, row);
    }
    row.spans.push(span);
  }
  const place = (node: string) => {
    const at = nodes.indexOf(node);
    return at < 0 ? nodes.length : at;
  };
  const ordered = [...rows.values()].toSorted((a, b) => place(a.node) - place(b.node));
  const pools = [...new Set(ordered.flatMap((row) => row.pool ?? []))];
  if (pools.length < 2) return ordered;
  return [...pools, null].flatMap((pool) =>
    ordered
      .filter((row) => row.pool === pool)
      .map((row, index) => ({ ...row, opens: index === 0 })),
  );
}

export interface Range {
  start: number;
  end: number;
}

/** The last `seconds`, or everything where there is less. */
export function lastSeconds(spans: readonly StageSpan[], seconds: number, now: number): Range {
  const first = spans[0]?.start ?? now;
  const end = Math.max(now, ...spans.slice(-50).map((span) => span.end ?? span.start));
  return { start: Math.max(first, end - seconds * 1000), end };
}

export function zoomRange(range: Range, at: number, factor: number): Range {
  const length = Math.max(20, (range.end - range.start) * factor);
  const share = (at - range.start) / (range.end - range.start || 1);
  const start = at - length * share;
  return { start, end: start + length };
}

/** Round distances between ticks, in milliseconds. */
export function tickStep(range: Range, ticks: number): number {
  const wish = (range.end - range.start) / ticks;
  const steps = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 216e5,
  ];
  return steps.find((step) => step >= wish) ?? 864e5;
}

export interface Share {
  /** A stage, or a pool. */
  name: string;
  /** In a step. */
  seconds: number;
}

/** What the last steps were made of. */
export interface StepShares {
  /** From one step's end to the next one's; null before there are two. */
  every: number | null;
  /** How long each stage took, longest first. */
  stages: readonly Share[];
  /** How long each pool was at work, where a run has several; their steps overlap. */
  pools: readonly Share[];
}

export function stepShares(spans: readonly StageSpan[], steps: number): StepShares {
  const several = new Set(spans.flatMap((span) => span.pool ?? [])).size > 1;
  // With several pools the step before the newest may be on its way as well.
  const last = (spans.at(-1)?.step ?? 0) - (several ? 1 : 0);
  const done = spans.filter(
    (span) =>
      span.end !== null && span.step !== null && span.step > last - steps && span.step < last,
  );
  const ends = new Map<number, number>();
  for (const span of done) {
    const step = span.step ?? 0;
    ends.set(step, Math.max(ends.get(step) ?? 0, span.end ?? 0));
  }
  const moments = [...ends.values()].toSorted((a, b) => a - b);
  const gaps = moments.slice(1).map((end, index) => (end - (moments[index] ?? end)) / 1000);
  return {
    every: gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? null,
    stages: sums(done, (span) => span.stage, ends.size),
    pools: several ? sums(done, (span) => span.pool ?? DRIVER, ends.size) : [],
  };
}

function sums(
  spans: readonly StageSpan[],
  nameOf: (span: StageSpan) => string,
  steps: number,
): Share[] {
  const found = new Map<string, number>();
  for (const span of spans) {
    const seconds = ((span.end ?? span.start) - span.start) / 1000;
    found.set(nameOf(span), (found.get(nameOf(span)) ?? 0) + seconds);
  }
  return [...found]
    .map(([name, sum]) => ({ name, seconds: sum / Math.max(1, steps) }))
    .toSorted((a, b) => b.seconds - a.seconds);
}
