/** What holds a run back: one stage, by its share of a step, wherever it is named. Pure. */
import type { Gauges } from "@/api/types";
import type { StageSpan } from "@/live/state";

export interface Bottleneck {
  stage: string;
  node: string;
  seconds: number;
  /** Of the step, 0 to 1. */
  share: number;
  stepSeconds: number | null;
  /** The pool that is at work least, where there are several. */
  idle: { pool: string; share: number } | null;
}

export function bottleneckOf(
  gauges: Gauges | null,
  spans: readonly StageSpan[],
): Bottleneck | null {
  const stage = gauges?.bottleneck;
  const gauge = stage ? gauges?.stages?.[stage] : undefined;
  if (!gauges || !stage || !gauge) return null;
  return {
    stage,
    node: stage.split(".")[0] ?? stage,
    // Some stages run several times in a step.
    seconds: gauges.step_seconds ? gauge.share * gauges.step_seconds : gauge.seconds,
    share: gauge.share,
    stepSeconds: gauges.step_seconds ?? null,
    idle: mostIdle(spans),
  };
}

const RECENT = 200;

/** Work of the last spans by pool; null where a run has one pool only. */
export function poolWork(spans: readonly StageSpan[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const span of spans.slice(-RECENT)) {
    if (span.pool === null || span.end === null || span.evaluation !== null) continue;
    found.set(span.pool, (found.get(span.pool) ?? 0) + span.end - span.start);
  }
  return found;
}

/** Milliseconds over which that work was done. */
export function windowOf(spans: readonly StageSpan[]): number {
  const recent = spans.slice(-RECENT).filter((span) => span.end !== null);
  const [first, last] = [recent[0], recent.at(-1)];
  return first && last ? Math.max(1, (last.end ?? last.start) - first.start) : 1;
}

function mostIdle(spans: readonly StageSpan[]): Bottleneck["idle"] {
  const work = [...poolWork(spans)];
  if (work.length < 2) return null;
  const [pool, worked] = work.toSorted(([, a], [, b]) => a - b)[0] ?? ["", 0];
  return { pool, share: Math.max(0, 1 - worked / windowOf(spans)) };
}
