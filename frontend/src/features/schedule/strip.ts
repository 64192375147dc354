/** The schedule in true proportion: which learner learns in which steps, phase by phase and round by round. Pure. */
import type { Catalog, JsonObject, PlanSummary } from "@/api/types";
import { teachingPorts } from "@/document/canConnect";
import { portRef } from "@/document/edges";
import { isGroup, type PhasePath, phaseList, schedule } from "@/document/phases";
import type { LoopDocument } from "@/document/types";
import { isObject } from "@/lib/paths";
import { sum } from "@/lib/statistics";
import { phaseLength } from "./phaseText";

export interface StripItem {
  at: PhasePath;
  name: string;
  length: string;
  from: number;
  steps: number;
  isKnown: boolean;
  round: Strip | null;
  rounds: number;
}

export interface Span {
  from: number;
  to: number;
}

export function stepsIn(spans: readonly Span[]): number {
  return sum(spans.map(({ from, to }) => to - from));
}

export interface Strip {
  steps: number;
  isKnown: boolean;
  items: StripItem[];
  learners: Map<string, Span[]>;
}

/** Of what nobody knows how long it lasts, among phases whose lengths are known. */
const GUESSED_SHARE = 0.2;
const MIN = 1;
/** More rounds than these are drawn as one. */
const MAX_SPANS = 2000;

/** Where a step stands across the strip, from 0 to its width. */
export type Place = (step: number) => number;

export function proportions({ items, steps }: Strip): number[] {
  return items.map((item) => item.steps / Math.max(1, steps));
}

/** The least shares of a phase and of a group in the width, so that their names and steps are read. */
const LEAST_SHARE = 0.13;
const LEAST_GROUP_SHARE = 0.2;

/** Shares of the phases in the width: as their steps, but none too narrow to be read. */
export function sharesOf(strip: Strip): number[] {
  const most = 1 / Math.max(1, strip.items.length);
  const least = strip.items.map(({ round }) =>
    Math.min(round ? LEAST_GROUP_SHARE : LEAST_SHARE, most),
  );
  const real = proportions(strip).map((share, index) => ({ share, least: least[index] ?? 0 }));
  const narrow = real.filter(({ share, least }) => share < least);
  const rest = sum(real.filter(({ share, least }) => share >= least).map(({ share }) => share));
  const wide = (1 - sum(narrow.map(({ least }) => least))) / Math.max(rest, Number.EPSILON);
  return real.map(({ share, least }) => (share < least ? least : share * wide));
}

/** Each phase is drawn to scale within its share of the width. */
export function placesOf({ items }: Strip, shares: readonly number[], width: number): Place {
  const starts = shares.map((_, index) => sum(shares.slice(0, index)));
  return (step) => {
    const index = Math.max(
      0,
      items.findLastIndex((item) => item.from <= step),
    );
    const item = items[index];
    if (!item) return 0;
    const part = Math.min(1, (step - item.from) / Math.max(1, item.steps));
    return ((starts[index] ?? 0) + part * (shares[index] ?? 0)) * width;
  };
}

export function stripOf(
  catalog: Catalog,
  document: LoopDocument,
  plan: PlanSummary | null | undefined,
): Strip {
  const whole = schedule(document);
  const phases = phaseList(document, []);
  const all = teachingPorts(catalog, document).map((port) => port.name);
  const list: JsonObject[] = phases?.filter(isObject) ?? [
    { ...whole, name: "whole run", learn: all },
  ];
  const reader = new Reader(plan, rhythms(whole), guess(list, plan));
  const strip = reader.read(list, []);
  return phases ? strip : { ...strip, items: strip.items.map((item) => ({ ...item, at: [] })) };
}

interface Rhythm {
  every: number;
  after: number;
}

function rhythms({ learn }: JsonObject): ReadonlyMap<string, Rhythm> {
  const rules = Object.entries(isObject(learn) ? learn : {});
  return new Map(
    rules.map(([node, rule]) => {
      const { every, after } = isObject(rule) ? rule : {};
      return [node, { every: whole(every, 1), after: whole(after, 0) }];
    }),
  );
}

function guess(list: readonly JsonObject[], plan: PlanSummary | null | undefined): number {
  const known = plan?.phases.map((phase) => (phase.steps ?? 0) * phase.rounds) ?? [];
  const own = list.map((phase) => whole(phase.steps, 0));
  const total = Math.max(sum(known), sum(own));
  return Math.max(MIN, Math.round(total * GUESSED_SHARE));
}

class Reader {
  private index = 0;

  constructor(
    private readonly plan: PlanSummary | null | undefined,
    private readonly rhythms: ReadonlyMap<string, Rhythm>,
    private readonly guessed: number,
  ) {}

  read(list: readonly JsonObject[], parent: PhasePath): Strip {
    const items: StripItem[] = [];
    const learners = new Map<string, Span[]>();
    let at = 0;
    for (const [place, phase] of list.entries()) {
      const item = isGroup(phase)
        ? this.group(phase, [...parent, place], at, learners)
        : this.phase(phase, [...parent, place], at, learners);
      items.push(item);
      at += item.steps;
    }
    return { steps: at, isKnown: items.every((item) => item.isKnown), items, learners };
  }

  private phase(
    phase: JsonObject,
    at: PhasePath,
    from: number,
    learners: Map<string, Span[]>,
  ): StripItem {
    const planned = this.plan?.phases.find(({ index }) => index === this.index)?.steps;
    this.index += 1;
    const known = whole(phase.steps, planned ?? 0);
    const steps = known || this.guessed;
    const ports = Array.isArray(phase.learn) ? phase.learn.map(String) : [];
    for (const node of new Set(ports.map((name) => portRef(name).node))) {
      append(learners, node, spansOf(from, steps, this.rhythms.get(node)));
    }
    const name = String(phase.name ?? `phase ${(at.at(-1) ?? 0) + 1}`);
    const length = known > 0 && planned ? phaseLength({ steps: known }) : phaseLength(phase);
    return { at, name, length, from, steps, isKnown: known > 0, round: null, rounds: 1 };
  }

  private group(
    group: JsonObject,
    at: PhasePath,
    from: number,
    learners: Map<string, Span[]>,
  ): StripItem {
    const round = this.read(phaseListOf(group), at);
    const rounds = Math.max(1, whole(group.repeat, 1));
    for (const [node, spans] of round.learners) {
      append(learners, node, repeated(spans, rounds, round.steps, from));
    }
    const parts = round.items.map((item) => item.steps).join(" + ");
    return {
      at,
      name: String(group.name ?? round.items.map((item) => item.name).join(", ")),
      length: `${rounds} ${rounds === 1 ? "round" : "rounds"} of ${parts}`,
      from,
      steps: round.steps * rounds,
      isKnown: round.isKnown,
      round,
      rounds,
    };
  }
}

function phaseListOf({ phases }: JsonObject): JsonObject[] {
  return Array.isArray(phases) ? phases.filter(isObject) : [];
}

function repeated(spans: readonly Span[], rounds: number, steps: number, from: number): Span[] {
  if (rounds * spans.length > MAX_SPANS) return [{ from, to: from + rounds * steps }];
  return Array.from({ length: rounds }, (_, round) => from + round * steps).flatMap((start) =>
    spans.map((span) => ({ from: start + span.from, to: start + span.to })),
  );
}

/** Every step of a phase, or those of a learner's own rhythm. */
function spansOf(from: number, steps: number, rhythm: Rhythm | undefined): Span[] {
  const { every, after } = rhythm ?? { every: 1, after: 0 };
  const start = from + after;
  const count = Math.ceil((steps - after) / every);
  if (count <= 0) return [];
  if (every === 1 || count > MAX_SPANS) return [{ from: start, to: from + steps }];
  return Array.from({ length: count }, (_, at) => ({
    from: start + at * every,
    to: start + at * every + 1,
  }));
}

function append(learners: Map<string, Span[]>, node: string, spans: readonly Span[]): void {
  const own = learners.get(node) ?? [];
  for (const span of spans) {
    const last = own.at(-1);
    if (last && last.to === span.from) last.to = span.to;
    else own.push({ ...span });
  }
  learners.set(node, own);
}

function whole(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : otherwise;
}
