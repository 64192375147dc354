/**
 * What would shorten the step of a run, from what the catalog knows of the stage that holds it back. Pure.
 *
 * One formula each: of a step of `T` seconds in which the stage takes `s`, `T - saved * s` are left; where
 * pools wait for each other, the busiest one alone makes the step.
 */
import type { Catalog, Gauges, Json } from "@/api/types";
import { defaultAt, fieldAt } from "@/document/fieldAt";
import { findPlace, readDocumentPath } from "@/document/place";
import type { LoopDocument } from "@/document/types";
import { readPath } from "@/lib/paths";
import type { StageSpan } from "@/live/state";

type Known = Catalog["remedies"][number];

export interface Remedy {
  label: string;
  bound: string;
  reason: string;
  path: string;
  isHot: boolean;
  /** What would be set instead, and how long a step is then; null: the field is only one to look at. */
  fix: { value: number | boolean; stepSeconds: number } | null;
}

export interface Measured {
  spans: readonly StageSpan[];
  /** The last value of a metric of a node; null where it has none. */
  read: (node: string, metric: string) => number | null;
}

/** A change that saves less than this is none. */
const MIN = 0.05;

/** The remedy that saves most; of those that promise nothing, the first; null where none is known. */
export function remedyOf(
  catalog: Catalog,
  document: LoopDocument,
  found: Bottleneck,
  measured: Measured,
): Remedy | null {
  const { stepSeconds } = found;
  if (stepSeconds === null) return null;
  const remedies = catalog.remedies.flatMap((known) => {
    const remedy = applied(catalog, document, { ...found, stepSeconds }, known, measured);
    return remedy ? [remedy] : [];
  });
  const fixes = remedies.flatMap((one) => (one.fix ? [{ one, seconds: one.fix.stepSeconds }] : []));
  const best = fixes.toSorted((a, b) => a.seconds - b.seconds)[0];
  return best?.one ?? remedies[0] ?? null;
}

function applied(
  catalog: Catalog,
  document: LoopDocument,
  found: Bottleneck & { stepSeconds: number },
  known: Known,
  measured: Measured,
): Remedy | null {
  const { label, bound, reason, change } = known;
  const path = known.path.replace("{node}", found.node);
  const verb = found.stage.slice(found.node.length + 1);
  if (known.when === "stage" && !known.verbs.includes(verb)) return null;
  const place = readDocumentPath(document, path);
  const field = fieldAt(catalog, document, place);
  if (!field) return null;
  const remedy = { label, bound, reason, path, isHot: field.isHot };
  if (change === "look") return { ...remedy, fix: null };
  const value = valueAt(catalog, document, path);
  if (known.only !== null && value !== known.only) return null;
  if (!reaches(known, found.node, value, measured)) return null;
  const next = changed(known, value);
  if (next === null) return null;
  const seconds =
    known.when === "pools_wait"
      ? besideEachOther(found.stepSeconds, measured.spans)
      : found.stepSeconds - saved(known, value) * found.seconds;
  if (seconds === null || seconds > (1 - MIN) * found.stepSeconds) return null;
  return { ...remedy, fix: { value: next, stepSeconds: seconds } };
}

function valueAt(catalog: Catalog, document: LoopDocument, path: string): Json | undefined {
  const at = readDocumentPath(document, path);
  const place = findPlace(document, at);
  return readPath(place.root, place.path) ?? defaultAt(catalog, document, at);
}

/** Whether what was measured is so near to the value that changing it does something. */
function reaches(known: Known, node: string, value: Json | undefined, { read }: Measured): boolean {
  if (known.metric === null) return true;
  const measured = read(node, known.metric);
  return measured !== null && typeof value === "number" && measured >= known.reach * value;
}

/** What the field has with the change; null where there is nothing left to change. */
function changed({ change, amount }: Known, value: Json | undefined): number | boolean | null {
  if (change === "becomes") {
    const isThere = typeof amount === "number" && Number(value ?? 0) >= amount;
    return isThere ? null : amount;
  }
  if (typeof value !== "number") return null;
  const next = change === "times" ? Math.round(value * Number(amount)) : value - Number(amount);
  return next >= 1 && next !== value ? next : null;
}

/** The share of the stage's time that a change saves. */
export function saved({ change, amount, saves }: Known, value: Json | undefined): number {
  if (change === "becomes") return saves;
  if (change === "less") return Number(amount) / Number(value);
  const times = Number(amount);
  return times < 1 ? 1 - times : 1 - 1 / times;
}

/** Seconds of a step in which pools need not wait for each other; null where there are no several. */
function besideEachOther(stepSeconds: number, spans: readonly StageSpan[]): number | null {
  const work = poolWork(spans);
  return work.size < 2 ? null : (stepSeconds * Math.max(...work.values())) / windowOf(spans);
}

export interface Bottleneck {
  stage: string;
  node: string;
  seconds: number;
  share: number;
  stepSeconds: number | null;
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
    seconds: gauges.step_seconds ? gauge.share * gauges.step_seconds : gauge.seconds,
    share: gauge.share,
    stepSeconds: gauges.step_seconds ?? null,
    idle: mostIdle(spans),
  };
}

const RECENT = 200;

function poolWork(spans: readonly StageSpan[]): Map<string, number> {
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
