/**
 * A run as it stood at a moment of its past, from what it recorded.
 *
 *     marks before the window + events of the window up to t ──applyEvent──▶ state ──▶ gauges
 *
 * Gauges are not recorded: what a node did is counted again from the spans of the last steps.
 */
import type { Gauges, RunEvent } from "@/api/types";
import { applyEvent } from "./reducer";
import { createLiveState, type LiveState, type StageSpan } from "./state";

/** What a replay stands on. */
export interface Record {
  /** Events of the whole run that are worth knowing at any moment; none where the events are whole. */
  marks: readonly RunEvent[];
  /** Without a gap, in order. */
  events: readonly RunEvent[];
}

/** As many of the newest steps make the rates. */
const STEPS = 8;

export function replayState(
  { marks, events }: Record,
  time: number,
  seq = Number.POSITIVE_INFINITY,
): LiveState {
  const state = createLiveState();
  const first = events[0]?.seq ?? Number.POSITIVE_INFINITY;
  for (const event of marks) if (event.seq < first) applyEvent(state, event);
  playOn(state, events, time, seq);
  return state;
}

/** Applies what came after the state, up to a moment. */
export function playOn(
  state: LiveState,
  events: readonly RunEvent[],
  time: number,
  seq = Number.POSITIVE_INFINITY,
): void {
  for (let at = firstAfter(events, state.lastSeq); at < events.length; at += 1) {
    const event = events[at];
    if (!event || event.seq > seq || Date.parse(event.at) > time) break;
    applyEvent(state, event);
  }
}

function firstAfter(events: readonly RunEvent[], seq: number): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.seq ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The last event of a step and of those before it. */
export function endOfStep(events: readonly RunEvent[], step: number): RunEvent | null {
  return events.findLast((event) => typeof event.step === "number" && event.step <= step) ?? null;
}

interface Work {
  seconds: number;
  runs: number;
  samples: number;
  tokens: number;
  starved: number;
  blocked: number;
  isEvaluation: boolean;
}

/** What the gauges said at that moment, as far as spans tell. */
export function gaugesOf(state: LiveState, steps: number | null): Gauges | null {
  const last = state.spans.at(-1);
  if (!last || state.state === null) return null;
  const done = state.spans.filter((span) => span.end !== null && span.step !== null);
  const newest = state.step ?? 0;
  const recent = done.filter((span) => (span.step ?? 0) > newest - STEPS);
  const begin = Math.min(...recent.map((span) => span.start));
  const end = Math.max(...recent.map((span) => span.end ?? span.start));
  const window = Math.max((end - begin) / 1000, 1e-3);
  const counted = Math.max(1, new Set(recent.map((span) => span.step)).size);
  const works = workByStage(recent);
  const stages: Gauges["stages"] = {};
  for (const [stage, work] of works) {
    stages[stage] = {
      seconds: work.seconds / work.runs,
      share: Math.min(1, work.seconds / window),
      samples_per_second: rate(work.samples, work.seconds),
      tokens_per_second: rate(work.tokens, work.seconds),
      wall_samples_per_second: rate(work.samples, window),
      wall_tokens_per_second: rate(work.tokens, window),
      starved: Math.min(1, work.starved / window),
      blocked: Math.min(1, work.blocked / window),
      evaluation: work.isEvaluation,
    };
  }
  const inSteps = [...works].filter(([, work]) => !work.isEvaluation);
  const slowest = inSteps.toSorted(([, a], [, b]) => b.seconds - a.seconds)[0];
  const phase = state.phases.at(-1);
  return {
    at: new Date(end).toISOString(),
    run: "",
    attempt: state.attempt,
    state: state.state,
    step: newest,
    steps_total: steps,
    is_bound: false,
    phase: phase?.name ?? null,
    phase_step: null,
    phase_steps: phase?.steps ?? null,
    stage: [...state.running.keys()][0] ?? null,
    at_work: [],
    eta_seconds: null,
    step_seconds: recent.length > 0 ? window / counted : null,
    evaluation_share: 0,
    progress: null,
    nodes: nodesOf(stages),
    stages,
    edges: {},
    bottleneck: slowest?.[0] ?? null,
    memory: {},
  };
}

function workByStage(spans: readonly StageSpan[]): Map<string, Work> {
  const found = new Map<string, Work>();
  for (const span of spans) {
    const work = found.get(span.stage) ?? {
      seconds: 0,
      runs: 0,
      samples: 0,
      tokens: 0,
      starved: 0,
      blocked: 0,
      isEvaluation: span.evaluation !== null,
    };
    work.seconds += ((span.end ?? span.start) - span.start) / 1000;
    work.runs += 1;
    work.samples += span.samples;
    work.tokens += span.tokens;
    work.starved += span.starved;
    work.blocked += span.blocked;
    found.set(span.stage, work);
  }
  return found;
}

/** A node's rates are those of the stage that takes most of its time. */
function nodesOf(stages: Gauges["stages"]): Gauges["nodes"] {
  const found: Gauges["nodes"] = {};
  for (const [stage, gauge] of Object.entries(stages).toSorted(
    ([, a], [, b]) => b.share - a.share,
  )) {
    const node = stage.split(".")[0] ?? stage;
    const before = found[node];
    const busy = Math.min(1, (before?.busy ?? 0) + gauge.share);
    found[node] = {
      samples_per_second: before?.samples_per_second ?? gauge.samples_per_second,
      tokens_per_second: before?.tokens_per_second ?? gauge.tokens_per_second,
      wall_samples_per_second: before?.wall_samples_per_second ?? gauge.wall_samples_per_second,
      wall_tokens_per_second: before?.wall_tokens_per_second ?? gauge.wall_tokens_per_second,
      busy,
      starved: Math.min(1 - busy, (before?.starved ?? 0) + gauge.starved),
      blocked: Math.min(1 - busy, (before?.blocked ?? 0) + gauge.blocked),
      evaluation: before ? before.evaluation && gauge.evaluation : gauge.evaluation,
      queue: null,
      staleness: null,
    };
  }
  return found;
}

function rate(count: number, seconds: number): number | null {
  return count > 0 && seconds > 0 ? count / seconds : null;
}
