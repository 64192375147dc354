/**
 * What the gauges said at a moment of the past. They are not recorded: what stages, nodes and edges did is
 * counted again, over the same last steps and evaluations, from the spans and the seconds of the steps.
 */
import type { Gauges } from "@/api/types";
import type { Flow } from "@/document/flows";
import type { LiveState, PhaseMark, StageSpan } from "./state";

/** As many of the newest steps of a phase, and evaluations of a probe, make the rates. */
const NEWEST = 8;

interface Work {
  seconds: number;
  runs: number;
  samples: number;
  tokens: number;
  starved: number;
  blocked: number;
}

/** What was done in a stretch of time. */
interface Window {
  seconds: number;
  works: Map<string, Work>;
  isEvaluation: boolean;
}

export function gaugesOf(
  state: LiveState,
  steps: number | null,
  flows: readonly Flow[] = [],
): Gauges | null {
  const last = state.spans.at(-1);
  if (!last || state.state === null) return null;
  const done = state.spans.filter((span) => span.end !== null && span.step !== null);
  const phase = phaseOf(state);
  const [inSteps, count] = stepWindow(state, done, phase);
  const aside = evaluationWindows(state, done);
  const stages = stagesOf(inSteps, aside);
  const slowest = [...inSteps.works].toSorted(([, a], [, b]) => b.seconds - a.seconds)[0];
  return {
    at: new Date(Math.max(...done.map((span) => span.end ?? 0), last.start)).toISOString(),
    run: "",
    attempt: state.attempt,
    state: state.state,
    step: state.step ?? 0,
    steps_total: steps,
    is_bound: false,
    phase: phase?.name ?? null,
    phase_step: null,
    phase_steps: phase?.steps ?? null,
    stage: [...state.running.keys()][0] ?? null,
    at_work: [],
    eta_seconds: null,
    step_seconds: count > 0 ? inSteps.seconds / count : null,
    window_steps: count,
    phase_step_seconds: null,
    evaluation_share: 0,
    progress: null,
    nodes: nodesOf(stages),
    stages,
    edges: edgesOf(flows, phase, inSteps, aside),
    bottleneck: slowest?.[0] ?? null,
    memory: {},
  };
}

/** The phase of the last step that was done: one that has just begun has nothing to show. */
function phaseOf(state: LiveState): PhaseMark | null {
  const newest = state.step ?? 0;
  const begun = state.phases.filter((phase) => phase.step !== null && phase.step < newest);
  return begun.at(-1) ?? state.phases.at(-1) ?? null;
}

/** The newest steps of a phase, without what was done for evaluations; and how many these are. */
function stepWindow(
  state: LiveState,
  done: readonly StageSpan[],
  phase: PhaseMark | null,
): [Window, number] {
  const newest = state.step ?? 0;
  const first = Math.max((phase?.step ?? 0) + 1, newest - NEWEST + 1);
  const own = done.filter((span) => span.evaluation === null && (span.step ?? 0) >= first);
  const count = new Set(own.map((span) => span.step)).size;
  const seconds = secondsOfSteps(state, first, newest) ?? lengthOf(own);
  return [{ seconds, works: worksOf(own), isEvaluation: false }, count];
}

/** By what the run measured of each step; null where it told nothing of it. */
function secondsOfSteps(state: LiveState, first: number, newest: number): number | null {
  const curve = state.series.get("step/seconds")?.get("run");
  if (!curve || curve.width > 1) return null;
  const own = curve.values.filter((value, at) => {
    const step = curve.steps[at] ?? 0;
    return step >= first && step <= newest && Number.isFinite(value);
  });
  return own.length > 0 ? own.reduce((sum, value) => sum + value, 0) : null;
}

function lengthOf(spans: readonly StageSpan[]): number {
  const begin = Math.min(...spans.map((span) => span.start));
  const end = Math.max(...spans.map((span) => span.end ?? span.start));
  return spans.length > 0 ? Math.max((end - begin) / 1000, 1e-3) : 0;
}

/** By probe, its newest evaluations, over the time from the one before them up to now. */
function evaluationWindows(state: LiveState, done: readonly StageSpan[]): Window[] {
  const began = state.spans[0]?.start ?? 0;
  const now = Math.max(...done.map((span) => span.end ?? 0), began);
  const probes = new Set(done.map((span) => span.evaluation).filter((name) => name !== null));
  return [...probes].map((probe) => {
    const spans = done.filter((span) => span.evaluation === probe);
    const steps = [...new Set(spans.map((span) => span.step))];
    const kept = new Set(steps.slice(-NEWEST));
    const own = spans.filter((span) => kept.has(span.step));
    const before = spans.filter((span) => !kept.has(span.step)).map((span) => span.end ?? 0);
    const since = before.length > 0 ? Math.max(...before) : began;
    const seconds = Math.max((now - since) / 1000, 1e-3);
    return { seconds, works: worksOf(own), isEvaluation: true };
  });
}

function worksOf(spans: readonly StageSpan[]): Map<string, Work> {
  const found = new Map<string, Work>();
  for (const span of spans) {
    const work = found.get(span.stage) ?? nothing();
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

const nothing = (): Work => ({
  seconds: 0,
  runs: 0,
  samples: 0,
  tokens: 0,
  starved: 0,
  blocked: 0,
});

/** Stages of the steps, and those that only evaluations run: what several probes ask of one adds up. */
function stagesOf(inSteps: Window, aside: readonly Window[]): Gauges["stages"] {
  const names = [inSteps, ...aside].flatMap((window) => [...window.works.keys()]);
  return Object.fromEntries(
    [...new Set(names)].map((stage) => {
      const own = inSteps.works.has(stage)
        ? [inSteps]
        : aside.filter((one) => one.works.has(stage));
      return [stage, stageOf(stage, own)];
    }),
  );
}

function stageOf(stage: string, windows: readonly Window[]): Gauges["stages"][string] {
  const sum = (read: (work: Work, window: Window) => number) =>
    windows.reduce((all, one) => all + read(one.works.get(stage) ?? nothing(), one), 0);
  const share = (read: (work: Work) => number) =>
    Math.min(
      1,
      sum((work, { seconds }) => (seconds > 0 ? read(work) / seconds : 0)),
    );
  const wall = (read: (work: Work) => number) =>
    sum((work, { seconds }) => rate(read(work), seconds) ?? 0) || null;
  const seconds = sum((work) => work.seconds);
  return {
    seconds: seconds / sum((work) => work.runs),
    share: share((work) => work.seconds),
    samples_per_second: rate(
      sum((work) => work.samples),
      seconds,
    ),
    tokens_per_second: rate(
      sum((work) => work.tokens),
      seconds,
    ),
    wall_samples_per_second: wall((work) => work.samples),
    wall_tokens_per_second: wall((work) => work.tokens),
    starved: share((work) => work.starved),
    blocked: share((work) => work.blocked),
    evaluation: windows.every((window) => window.isEvaluation),
  };
}

/** A node's rates are those of the stage that takes most of its time; evaluations count where it has no other work. */
function nodesOf(stages: Gauges["stages"]): Gauges["nodes"] {
  const found: Gauges["nodes"] = {};
  const order = Object.entries(stages).toSorted(
    ([, a], [, b]) => Number(a.evaluation) - Number(b.evaluation) || b.share - a.share,
  );
  for (const [stage, gauge] of order) {
    const node = stage.split(".")[0] ?? stage;
    const before = found[node];
    if (before && gauge.evaluation && !before.evaluation) continue;
    const busy = Math.min(1, (before?.busy ?? 0) + gauge.share);
    const starved = Math.min(1 - busy, (before?.starved ?? 0) + gauge.starved);
    found[node] = {
      samples_per_second: before?.samples_per_second ?? gauge.samples_per_second,
      tokens_per_second: before?.tokens_per_second ?? gauge.tokens_per_second,
      wall_samples_per_second: before?.wall_samples_per_second ?? gauge.wall_samples_per_second,
      wall_tokens_per_second: before?.wall_tokens_per_second ?? gauge.wall_tokens_per_second,
      busy,
      starved,
      blocked: Math.min(1 - busy - starved, (before?.blocked ?? 0) + gauge.blocked),
      evaluation: gauge.evaluation,
      queue: null,
      staleness: null,
    };
  }
  return found;
}

/** What its giver made goes over an edge, where its reader was at work and the phase learns what it teaches. */
function edgesOf(
  flows: readonly Flow[],
  phase: PhaseMark | null,
  inSteps: Window,
  aside: readonly Window[],
): Gauges["edges"] {
  const found: Gauges["edges"] = {};
  for (const flow of flows) {
    const isLive = flow.teaches === null || isLearned(phase, flow.teaches);
    const inStep = isLive && worksAt(inSteps, flow.reader) ? rowsOf(inSteps, flow.stage) : 0;
    const asking =
      flow.teaches === null ? aside.filter((window) => worksAt(window, flow.reader)) : [];
    const evaluated = asking.reduce(
      (sum, window) => sum + rowsOf(window, flow.stage) / window.seconds,
      0,
    );
    // A reader may be at work in the steps by other edges than one whose giver evaluations alone ask.
    const isAsked = evaluated > 0 || (asking.length > 0 && !worksAt(inSteps, flow.reader));
    const isEvaluation = inStep === 0 && isAsked;
    const per = inSteps.seconds > 0 ? inStep / inSteps.seconds : null;
    found[flow.key] = {
      // A probe may read other rows than those of the edge: of these nothing is known.
      rows_per_second: isEvaluation ? evaluated || null : per,
      rows: 0,
      queue: 0,
      staleness: null,
      evaluation: isEvaluation,
    };
  }
  return found;
}

/** A phase names ports, or whole nodes; one that names nothing learns all. */
function isLearned(phase: PhaseMark | null, port: string): boolean {
  const learn = phase?.learn ?? [];
  return learn.length === 0 || learn.includes(port) || learn.includes(port.split(".")[0] ?? "");
}

const worksAt = ({ works }: Window, node: string) =>
  [...works.keys()].some((stage) => stage.startsWith(`${node}.`));

const rowsOf = ({ works }: Window, stage: string) => works.get(stage)?.samples ?? 0;

function rate(count: number, seconds: number): number | null {
  return count > 0 && seconds > 0 ? count / seconds : null;
}
