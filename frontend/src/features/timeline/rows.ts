/** The timeline's rows and bars: a row for each stage, pool by pool in the order of the loop. Pure. */
import type { Gauges } from "@/api/types";
import type { StageSpan } from "@/live/state";

export type Grouping = "byPool" | "byRank" | "byStage";

export interface TimelineRow {
  key: string;
  label: string;
  note: string;
  node: string | null;
  showsIdle: boolean;
  bars: Bar[];
}

export interface Bar {
  span: StageSpan;
  start: number;
  end: number | null;
}

/** What the timeline calls the place of stages without a pool. */
const DRIVER = "driver";

/**
 * @param nodes of the loop, in its order
 */
export function timelineRows(
  spans: readonly StageSpan[],
  nodes: readonly string[],
  grouping: Grouping,
): TimelineRow[] {
  if (grouping === "byStage") return stageRows(spans, nodes);
  const own = spans.filter((span) => !(span.pool === null && span.stage.endsWith(".evaluate")));
  const pools = [...new Set(own.map((span) => span.pool))].toSorted(
    (a, b) => Number(a === null) - Number(b === null),
  );
  return pools.flatMap((pool) => {
    const inPool = own.filter((span) => span.pool === pool);
    const ranks = Math.max(1, ...inPool.map((span) => span.ranks.length));
    const row = { key: pool ?? "", label: pool ?? DRIVER, node: null };
    if (grouping === "byRank" && ranks > 1) {
      return Array.from({ length: ranks }, (_, rank) => {
        const bars = inPool.map((span) => rankBar(span, rank));
        return { ...row, key: `${row.key} ${rank}`, note: `rank ${rank}`, showsIdle: true, bars };
      });
    }
    const note = ranks > 1 ? `${ranks} ranks` : "";
    return [{ ...row, note, showsIdle: pool !== null, bars: inPool.map(stageBar) }];
  });
}

function stageBar(span: StageSpan): Bar {
  return { span, start: span.start, end: span.end };
}

/** A rank has its part of a stage, and may be done before the others. */
function rankBar(span: StageSpan, rank: number): Bar {
  const seconds = span.ranks[rank];
  if (seconds === undefined || span.end === null) return stageBar(span);
  return { span, start: span.start, end: Math.min(span.start + seconds * 1000, span.end) };
}

function stageRows(spans: readonly StageSpan[], nodes: readonly string[]): TimelineRow[] {
  const rows = new Map<string, TimelineRow>();
  for (const span of spans) {
    const row = rows.get(span.stage) ?? {
      key: span.stage,
      label: span.stage,
      note: span.pool ?? DRIVER,
      node: span.node,
      showsIdle: false,
      bars: [],
    };
    rows.set(span.stage, row);
    row.bars.push(stageBar(span));
  }
  const place = (node: string | null) => {
    const at = nodes.indexOf(node ?? "");
    return at < 0 ? nodes.length : at;
  };
  return [...rows.values()].toSorted((a, b) => place(a.node) - place(b.node));
}

/** Share of a stretch of time in which several pools were at work at once. */
export function overlapShare(
  rows: readonly TimelineRow[],
  range: Range,
  now: number,
): number | null {
  const pools = rows.filter((row) => row.showsIdle);
  if (pools.length < 2) return null;
  const edges = pools.flatMap(({ bars }) =>
    united(bars, range, now).flatMap(([start, end]) => [
      { at: start, by: 1 },
      { at: end, by: -1 },
    ]),
  );
  edges.sort((a, b) => a.at - b.at || a.by - b.by);
  let busy = 0;
  let since = range.start;
  let shared = 0;
  for (const { at, by } of edges) {
    if (busy > 1) shared += at - since;
    busy += by;
    since = at;
  }
  return shared / Math.max(1, range.end - range.start);
}

export function idleShare(row: TimelineRow, range: Range, now: number): number {
  const worked = united(row.bars, range, now).reduce((sum, [start, end]) => sum + end - start, 0);
  return 1 - worked / Math.max(1, range.end - range.start);
}

/** Bars as stretches that do not meet, within a range. */
function united(bars: readonly Bar[], range: Range, now: number): [number, number][] {
  const inside = bars
    .map(({ start, end }): [number, number] => [
      Math.max(start, range.start),
      Math.min(end ?? now, range.end),
    ])
    .filter(([start, end]) => end > start)
    .toSorted(([a], [b]) => a - b);
  const found: [number, number][] = [];
  for (const [start, end] of inside) {
    const last = found.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else found.push([start, end]);
  }
  return found;
}

export function stepStarts(
  spans: readonly StageSpan[],
  range: Range,
): { step: number; at: number }[] {
  const starts = new Map<number, number>();
  for (const { step, start, evaluation } of spans) {
    if (step === null || evaluation !== null) continue;
    starts.set(step, Math.min(starts.get(step) ?? start, start));
  }
  return [...starts]
    .map(([step, at]) => ({ step, at }))
    .filter(({ at }) => at >= range.start && at <= range.end)
    .toSorted((a, b) => a.at - b.at);
}

export interface Range {
  start: number;
  end: number;
}

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
  name: string;
  seconds: number;
}

export interface StepShares {
  step: number | null;
  stages: readonly Share[];
  pools: readonly Share[];
}

export function stepShares(gauges: Gauges | null, spans: readonly StageSpan[]): StepShares {
  const step = gauges?.step_seconds ?? null;
  if (!gauges || step === null) return { step: null, stages: [], pools: [] };
  const stages = Object.entries(gauges.stages ?? {})
    .filter(([, { evaluation }]) => !evaluation)
    .map(([name, { share }]) => ({ name, seconds: share * step }))
    .toSorted((a, b) => b.seconds - a.seconds);
  return { step, stages, pools: poolShares(spans, gauges.window_steps ?? 1) };
}

function poolShares(spans: readonly StageSpan[], steps: number): Share[] {
  const own = spans.filter(({ evaluation }) => evaluation === null);
  if (new Set(own.flatMap((span) => span.pool ?? [])).size < 2) return [];
  // The step before the newest may be on its way as well.
  const last = (own.at(-1)?.step ?? 0) - 1;
  const done = own.filter(
    ({ end, step }) => end !== null && step !== null && step > last - steps && step <= last,
  );
  const count = new Set(done.map(({ step }) => step)).size;
  const sums = new Map<string, number>();
  for (const { pool, start, end } of done) {
    const name = pool ?? DRIVER;
    sums.set(name, (sums.get(name) ?? 0) + ((end ?? start) - start) / 1000);
  }
  return [...sums]
    .map(([name, sum]) => ({ name, seconds: sum / Math.max(1, count) }))
    .toSorted((a, b) => b.seconds - a.seconds);
}

/** From where times count: the start of the run, also where only its last part is loaded. */
export function originOf(started: string | null, spans: readonly StageSpan[], now: number): number {
  const start = started === null ? Number.NaN : Date.parse(started);
  return Number.isFinite(start) ? start : (spans[0]?.start ?? now);
}
