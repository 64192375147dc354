/**
 * Folds durable events into the live state. Knows event types and no node kinds, metrics by name only.
 *
 * Events come in order of `seq`; one that was seen is passed over, so a replay that overlaps does no harm.
 * Unknown types are passed over as well: an older page can watch a newer run.
 */
import type { RunError, RunEvent, RunState } from "@/api/types";
import { isObject } from "@/lib/paths";
import { checkpointOf, MAX_MARKS, markOf } from "./marks";
import { addPoint, createSeries, type Series } from "./series";
import type { LiveAlert, LiveState, LogLine, StageSpan } from "./state";

export const MAX_SPANS = 4000;
const MAX_SAMPLE_STEPS = 400;
export const MAX_LINES = 2000;
const MAX_ALERTS = 100;

const EDIT_REFUSED = "control.edit_refused";

export const TOPICS = ["status", "gauges", "series", "spans", "samples", "lines"] as const;
export type Topic = (typeof TOPICS)[number];

export function applyEvent(state: LiveState, event: RunEvent): Topic | null {
  if (event.seq <= state.lastSeq) return null;
  state.lastSeq = event.seq;
  if (event.attempt > state.attempt) startAttempt(state, event);
  if (typeof event.step === "number") {
    if (state.step !== null && event.step < state.step) goBack(state, event.step);
    state.step = event.step;
  }
  const mark = markOf(event);
  if (mark) keep(state.marks, mark, MAX_MARKS);
  const checkpoint = checkpointOf(event);
  if (checkpoint) {
    const others = state.checkpoints.filter((one) => one.path !== checkpoint.path);
    state.checkpoints = [...others, checkpoint];
  }
  return HANDLERS[event.type]?.(state, event) ?? null;
}

type Handler = (state: LiveState, event: RunEvent) => Topic;

const HANDLERS: Record<string, Handler> = {
  "run.state": (state, event) => {
    state.state = event.state as RunState;
    state.message = text(event.message);
    state.error = isObject(event.error) ? (event.error as unknown as RunError) : null;
    if (isFinal(state.state)) endRunning(state, event.at);
    const level = state.state === "failed" ? "error" : "info";
    addLine(state, event, "run", level, state.message ?? `The run is ${state.state}.`, state.error);
    return "status";
  },
  phase: (state, event) => {
    if (event.state === "started") {
      const name = String(event.phase ?? event.name ?? "");
      state.phases.push({ name, round: number(event.round) ?? 1, step: event.step ?? null });
    }
    addLine(state, event, "phase", "info", phaseText(event));
    return "status";
  },
  "stage.started": (state, event) => {
    const span = newSpan(event);
    state.running.set(span.stage, span);
    keep(state.spans, span, MAX_SPANS);
    return "spans";
  },
  "stage.finished": (state, event) => {
    const stage = String(event.stage);
    let span = state.running.get(stage);
    state.running.delete(stage);
    state.finished.set(stage, event.seq);
    const end = Date.parse(event.at);
    if (!span) {
      span = { ...newSpan(event), start: end - (number(event.seconds) ?? 0) * 1000 };
      keep(state.spans, span, MAX_SPANS);
    }
    span.end = end;
    span.samples = number(event.samples) ?? 0;
    span.tokens = number(event.tokens) ?? 0;
    span.starved = number(event.starved_seconds) ?? 0;
    span.blocked = number(event.blocked_seconds) ?? 0;
    span.ranks = Array.isArray(event.rank_seconds) ? event.rank_seconds.map(Number) : [];
    return "spans";
  },
  metrics: (state, event) => {
    const node = event.node ?? "run";
    const step = event.step ?? state.step ?? 0;
    const metrics = isObject(event.metrics) ? event.metrics : {};
    for (const [name, value] of Object.entries(metrics)) {
      const byNode = state.series.get(name) ?? new Map<string, Series>();
      const series = byNode.get(node) ?? createSeries();
      state.series.set(name, byNode.set(node, series));
      const point = typeof value === "number" ? value : Number.NaN;
      if (addPoint(series, step, point, event.attempt)) state.isWhole = false;
    }
    const phase = state.phases.at(-1);
    if (phase && phase.step === null) phase.step = step;
    return "series";
  },
  sample: (state, event) => {
    if (typeof event.step === "number" && event.step !== state.sampleSteps.at(-1)) {
      keep(state.sampleSteps, event.step, MAX_SAMPLE_STEPS);
    }
    return "samples";
  },
  checkpoint: (state, event) => {
    const isBest = event.best === true;
    const what = `${isBest ? "Best checkpoint so far" : "Checkpoint"}: ${text(event.path) ?? ""}`;
    addLine(state, event, "checkpoint", isBest ? "debug" : "info", what, event.metrics);
    return "lines";
  },
  edit: (state, event) => {
    const changes = isObject(event.changes) ? event.changes : {};
    const { attempt, step = null } = event;
    state.edits = [...state.edits, { attempt, step, changes }];
    const list = Object.entries(changes).map(
      ([path, value]) => `${path} = ${JSON.stringify(value)}`,
    );
    const what = `Changed by ${text(event.by) ?? "user"}: ${list.join(", ")}`;
    addLine(state, event, "edit", "info", what);
    return "lines";
  },
  alert: (state, event) => {
    if (event.code === EDIT_REFUSED) state.refusedEdits += 1;
    noteAlert(state, event);
    const said = [text(event.message), text(event.hint)].filter(Boolean).join(" ");
    const source = text(event.code)?.startsWith(TRIGGERS) ? "trigger" : "alert";
    addLine(state, event, source, level(event.level), said, event.code);
    return "lines";
  },
  diagnostic: (state, event) => {
    const found = isObject(event.diagnostic) ? event.diagnostic : {};
    const severity = found.severity === "hint" ? "info" : level(found.severity);
    addLine(state, event, "check", severity, text(found.message) ?? "", found);
    return "lines";
  },
  log: (state, event) => {
    addLine(state, event, "log", level(event.level), text(event.message) ?? "", event.detail);
    return "lines";
  },
};

/** Alerts of one code, node and metric are one; what only informs asks for nothing. */
function noteAlert(state: LiveState, event: RunEvent): void {
  const [code, node, metric] = [String(event.code), event.node ?? null, text(event.metric)];
  const isSame = (one: LiveAlert) =>
    one.code === code && one.node === node && one.metric === metric;
  const before = state.alerts.find(isSame);
  const others = before ? state.alerts.filter((one) => one !== before) : state.alerts;
  if (event.cleared === true || event.level === "info") {
    state.alerts = others;
    return;
  }
  const alert: LiveAlert = {
    seq: event.seq,
    raised: before?.raised ?? event.seq,
    level: event.level === "error" ? "error" : "warning",
    code,
    node,
    step: event.step ?? null,
    message: text(event.message) ?? code,
    hint: text(event.hint),
    metric,
    count: (before?.count ?? 0) + 1,
  };
  state.alerts = [...others, alert].slice(-MAX_ALERTS);
}

export function isFinal(state: RunState | null | undefined): boolean {
  return state === "stopped" || state === "finished" || state === "failed";
}

function startAttempt(state: LiveState, event: RunEvent): void {
  state.attempt = event.attempt;
  endRunning(state, event.at);
  state.error = null;
  // Phases and steps that the new attempt will go through again make room for it. What a metric
  // showed before stands until it is well again: nobody says it a second time.
  const step = event.step;
  state.alerts = state.alerts.filter(
    (one) => one.metric !== null && one.step !== null && one.step < (step ?? Infinity),
  );
  if (typeof step === "number") {
    state.phases = state.phases.filter((phase) => phase.step === null || phase.step < step);
    state.marks = state.marks.filter((mark) => mark.step < step);
    state.checkpoints = state.checkpoints.filter((one) => one.step <= step);
  }
}

/** A resume from an older checkpoint: what an earlier attempt changed later than that is lost. */
function goBack(state: LiveState, step: number): void {
  const kept = state.edits.filter(
    (edit) => edit.attempt === state.attempt || edit.step === null || edit.step <= step,
  );
  if (kept.length < state.edits.length) state.edits = kept;
}

function endRunning(state: LiveState, at: string): void {
  for (const span of state.running.values()) span.end = Date.parse(at);
  state.running.clear();
  state.finished.clear();
}

function newSpan(event: RunEvent): StageSpan {
  const stage = String(event.stage);
  return {
    stage,
    node: event.node ?? stage.split(".")[0] ?? stage,
    phase: String(event.phase ?? ""),
    step: event.step ?? null,
    pool: typeof event.pool === "string" ? event.pool : null,
    start: Date.parse(event.at),
    end: null,
    samples: 0,
    tokens: 0,
    starved: 0,
    blocked: 0,
    ranks: [],
    evaluation: text(event.evaluation),
  };
}

const TRIGGERS = "trigger.";

function phaseText(event: RunEvent): string {
  const round = number(event.round) ?? 1;
  const name = `${text(event.phase) ?? ""}${round > 1 ? `, round ${round},` : ""}`;
  if (event.state !== "started") return `Phase ${name} ended.`;
  const steps = number(event.steps);
  const ports = Array.isArray(event.learn) ? event.learn.map(String).join(", ") : "";
  const length = steps === null ? "" : ` for ${steps} steps`;
  return `Phase ${name} began${length}${ports === "" ? "" : `; learns at ${ports}`}.`;
}

function addLine(
  state: LiveState,
  event: RunEvent,
  source: string,
  lineLevel: LogLine["level"],
  message: string,
  detail?: unknown,
): void {
  const { seq, at, node = null, step = null } = event;
  keep(state.lines, { seq, at, level: lineLevel, source, node, step, message, detail }, MAX_LINES);
}

function keep<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max * 1.25) list.splice(0, list.length - max);
}

function number(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function level(value: unknown): LogLine["level"] {
  return value === "error" || value === "warning" || value === "debug" ? value : "info";
}
