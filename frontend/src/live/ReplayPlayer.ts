/**
 * Plays what a run recorded into a `LiveRun`, forth and back.
 *
 * Of a run with few events all are read at once; of a longer one those around the step that is asked for, and
 * further ones as it plays on. Gauges are those that the run kept, read a few steps at a time.
 */
import * as routes from "@/api/routes";
import type { Gauges, GaugesPage, RunEvent } from "@/api/types";
import { LiveRun } from "./LiveRun";
import { applyEvent } from "./reducer";
import { LiveState } from "./state";

/** Runs with no more events are read whole. */
const WHOLE = 20_000;
const PAGE = 5000;
const BEFORE = 20;
/** Longest wait for the next event, in seconds of who watches; breaks of a run are passed over. */
const LONGEST_GAP = 1.5;

type ReplayDeps = Pick<typeof routes, "fetchEvents" | "fetchMarks" | "fetchGauges">;

export class ReplayPlayer {
  readonly live: LiveRun;
  private record: Record = { marks: [], events: [] };
  private time = 0;
  private isLoading = false;
  private page: { from: number; gauges: GaugesPage } | null = null;
  private shows = 0;

  constructor(
    private readonly id: string,
    private readonly lastSeq: number,
    readonly lastStep: number,
    private readonly deps: ReplayDeps = routes,
  ) {
    this.live = new LiveRun(id);
    this.live.connection = "live";
  }

  get step(): number {
    return this.live.state.step ?? 0;
  }

  /** When what is shown was told; null before the first event. */
  get at(): string | null {
    const { lastSeq } = this.live.state;
    return this.record.events.findLast(({ seq }) => seq <= lastSeq)?.at ?? null;
  }

  /** False for a run of a version that kept no gauges: it has no rates to show. */
  get hasGauges(): boolean {
    return this.page?.gauges.is_recorded ?? true;
  }

  get hasEnded(): boolean {
    return (this.record.events.at(-1)?.seq ?? 0) >= this.lastSeq && this.nextEvent() === undefined;
  }

  async seek(step: number): Promise<void> {
    if (!this.holds(step)) await this.read(step);
    if (step >= this.lastStep) {
      return this.show(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, true);
    }
    const end = endOfStep(this.record.events, step);
    return this.show(end ? Date.parse(end.at) : this.begin, end?.seq ?? 0, true);
  }

  async advance(seconds: number, speed: number): Promise<void> {
    if (this.isLoading) return;
    if (this.nextEvent() === undefined && !this.hasEnded) await this.readOn();
    const next = this.nextEvent();
    if (next === undefined) return;
    const from = Number.isFinite(this.time) ? this.time : this.begin;
    const gap = Date.parse(next.at) - from;
    const by = seconds * speed * 1000;
    await this.show(gap > LONGEST_GAP * speed * 1000 ? Date.parse(next.at) : from + by);
  }

  private get begin(): number {
    return Date.parse(this.record.events[0]?.at ?? "") || 0;
  }

  private async show(time: number, seq = Number.POSITIVE_INFINITY, isJump = false): Promise<void> {
    const state = this.live.state;
    const isBack = time < this.time || seq < state.lastSeq || state.lastSeq === 0;
    const next = isBack ? replayState(this.record, time, seq) : state;
    if (!isBack) playOn(next, this.record.events, time, seq);
    this.time = time;
    const show = ++this.shows;
    next.gauges = await this.gaugesAt(next.lastSeq);
    if (show === this.shows) this.live.restore(next, isJump);
  }

  /** As the run showed them when the newest step by then had ended; null before the first one. */
  private async gaugesAt(seq: number): Promise<Gauges | null> {
    if (!this.page || !covers(this.page, seq)) {
      const gauges = await this.loading(this.deps.fetchGauges(this.id, seq));
      this.page = { from: seq, gauges };
    }
    return this.page.gauges.gauges.findLast((kept) => kept.seq <= seq)?.gauges ?? null;
  }

  private nextEvent(): RunEvent | undefined {
    return this.record.events.find((event) => event.seq > this.live.state.lastSeq);
  }

  private holds(step: number): boolean {
    const { events } = this.record;
    const [first, last] = [events[0], events.at(-1)];
    if (!first || !last) return false;
    if (first.seq === 1 && last.seq >= this.lastSeq) return true;
    const steps = events.flatMap((event) => (typeof event.step === "number" ? [event.step] : []));
    return steps.length > 0 && step > (steps[0] ?? 0) && step < (steps.at(-1) ?? 0);
  }

  private async read(step: number): Promise<void> {
    this.record = await this.loading(
      this.lastSeq <= WHOLE ? this.readAll() : this.readAround(step),
    );
    this.time = Number.POSITIVE_INFINITY; // whatever is shown next is made anew
  }

  private async readAround(step: number): Promise<Record> {
    const marks = await this.deps.fetchMarks(this.id);
    const around = { step: Math.max(0, step - BEFORE), limit: PAGE };
    const page = await this.deps.fetchEvents(this.id, around);
    return { marks: marks.events, events: page.events };
  }

  private async readAll(): Promise<Record> {
    const events: RunEvent[] = [];
    for (;;) {
      const page = await this.pageAfter(events);
      events.push(...page.events);
      if (!page.has_more || page.events.length === 0) return { marks: [], events };
    }
  }

  private async readOn(): Promise<void> {
    const { marks, events } = this.record;
    const page = await this.loading(this.pageAfter(events));
    this.record = { marks, events: [...events, ...page.events].slice(-WHOLE) };
  }

  private pageAfter(events: readonly RunEvent[]) {
    return this.deps.fetchEvents(this.id, { after: events.at(-1)?.seq ?? 0, limit: PAGE });
  }

  private async loading<T>(asked: Promise<T>): Promise<T> {
    this.isLoading = true;
    try {
      return await asked;
    } finally {
      this.isLoading = false;
    }
  }
}

function covers(
  { from, gauges: page }: { from: number; gauges: GaugesPage },
  seq: number,
): boolean {
  const last = page.has_more ? (page.gauges.at(-1)?.seq ?? 0) : page.last_seq + 1;
  return seq >= from && seq < last;
}

interface Record {
  /** Events of the whole run that are worth knowing at any moment; none where the events are whole. */
  marks: readonly RunEvent[];
  events: readonly RunEvent[];
}

export function replayState(
  { marks, events }: Record,
  time: number,
  seq = Number.POSITIVE_INFINITY,
): LiveState {
  const state = new LiveState();
  const first = events[0]?.seq ?? Number.POSITIVE_INFINITY;
  for (const event of marks) if (event.seq < first) applyEvent(state, event);
  playOn(state, events, time, seq);
  return state;
}

function playOn(
  state: LiveState,
  events: readonly RunEvent[],
  time: number,
  seq = Number.POSITIVE_INFINITY,
): void {
  for (const event of events) {
    if (event.seq <= state.lastSeq) continue;
    if (event.seq > seq || Date.parse(event.at) > time) break;
    applyEvent(state, event);
  }
}

function endOfStep(events: readonly RunEvent[], step: number): RunEvent | null {
  return events.findLast((event) => typeof event.step === "number" && event.step <= step) ?? null;
}
