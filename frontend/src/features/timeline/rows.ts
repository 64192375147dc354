/** The timeline's rows and bars: a row for each stage, in the order in which they first ran. Pure. */
import type { StageSpan } from "@/live/state";

export interface TimelineRow {
  stage: string;
  node: string;
  spans: StageSpan[];
}

export function timelineRows(spans: readonly StageSpan[], nodes: readonly string[]): TimelineRow[] {
  const rows = new Map<string, TimelineRow>();
  for (const span of spans) {
    let row = rows.get(span.stage);
    if (!row) {
      row = { stage: span.stage, node: span.node, spans: [] };
      rows.set(span.stage, row);
    }
    row.spans.push(span);
  }
  const place = (node: string) => {
    const at = nodes.indexOf(node);
    return at < 0 ? nodes.length : at;
  };
  return [...rows.values()].toSorted((a, b) => place(a.node) - place(b.node));
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

/** How long each stage took in the last steps, longest first. */
export function stageShares(
  spans: readonly StageSpan[],
  steps: number,
): { stage: string; seconds: number }[] {
  const last = spans.at(-1)?.step ?? 0;
  const sums = new Map<string, number>();
  const seen = new Set<number>();
  for (const span of spans) {
    if (
      span.end === null ||
      span.step === null ||
      span.step <= (last ?? 0) - steps ||
      span.step === last
    )
      continue;
    seen.add(span.step);
    sums.set(span.stage, (sums.get(span.stage) ?? 0) + (span.end - span.start) / 1000);
  }
  return [...sums]
    .map(([stage, sum]) => ({ stage, seconds: sum / Math.max(1, seen.size) }))
    .toSorted((a, b) => b.seconds - a.seconds);
}
