/** What holds a run back, and what would help: one stage, by its share of a step, wherever it is named. Pure. */
import type { Catalog, Gauges } from "@/api/types";
import type { LoopDocument } from "@/document/types";
import { parsePath, readPath } from "@/lib/paths";
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

function windowOf(spans: readonly StageSpan[]): number {
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

export interface Remedy {
  label: string;
  /** Why, in a sentence. */
  reason: string;
  /** Seconds of a step with it. */
  stepSeconds: number;
  /** Fields that a new run from here has otherwise. */
  changes: Readonly<Record<string, number>>;
}

/** Pools that wait for each other could work side by side: the busiest one alone makes the step then. */
export function remedyOf(
  catalog: Pick<Catalog, "remedies">,
  loop: LoopDocument["rest"],
  found: Bottleneck,
  spans: readonly StageSpan[],
): Remedy | null {
  const known = catalog.remedies.find((one) => one.when === "pools_wait");
  const work = poolWork(spans);
  if (!known || work.size < 2 || found.stepSeconds === null) return null;
  if (Number(readPath(loop, parsePath(known.path)) ?? 0) >= known.value) return null;
  const seconds = (found.stepSeconds * Math.max(...work.values())) / windowOf(spans);
  if (seconds > 0.95 * found.stepSeconds) return null;
  const { label, reason, path, value } = known;
  return { label, reason, stepSeconds: seconds, changes: { [path]: value } };
}
