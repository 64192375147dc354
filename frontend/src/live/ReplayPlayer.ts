/**
 * Plays what a run recorded into a `LiveRun`, forth and back.
 *
 * Of a run with few events all are read at once; of a longer one those around the step that is asked for, and
 * further ones as it plays on.
 */
import * as routes from "@/api/routes";
import type { RunEvent } from "@/api/types";
import type { Flow } from "@/document/flows";
import { LiveRun } from "./LiveRun";
import { endOfStep, playOn, type Record, replayState } from "./replay";
import { gaugesOf } from "./replayGauges";

/** Runs with no more events are read whole. */
const WHOLE = 20_000;
const PAGE = 5000;
/** Steps before the one that is asked for, so that rates and spans are there. */
const BEFORE = 20;
/** Longest wait for the next event, in seconds of who watches; breaks of a run are passed over. */
const LONGEST_GAP = 1.5;

export interface ReplayDeps {
  fetchEvents: typeof routes.fetchEvents;
  fetchEventsOfStep: typeof routes.fetchEventsOfStep;
  fetchMarks: typeof routes.fetchMarks;
}

export class ReplayPlayer {
  readonly live: LiveRun;
  private record: Record = { marks: [], events: [] };
  private time = 0;
  private isLoading = false;

  constructor(
    private readonly id: string,
    private readonly lastSeq: number,
    readonly lastStep: number,
    private readonly flows: readonly Flow[] = [],
    private readonly deps: ReplayDeps = routes,
  ) {
    this.live = new LiveRun(id);
    this.live.connection = "live";
  }

  get step(): number {
    return this.live.state.step ?? 0;
  }

  get hasEnded(): boolean {
    return (this.record.events.at(-1)?.seq ?? 0) >= this.lastSeq && this.nextEvent() === undefined;
  }

  /** Shows the run as it stood when a step had ended. */
  async seek(step: number): Promise<void> {
    if (!this.holds(step)) await this.read(step);
    if (step >= this.lastStep) this.show(Number.POSITIVE_INFINITY);
    else {
      const end = endOfStep(this.record.events, step);
      this.show(end ? Date.parse(end.at) : this.begin, end?.seq ?? 0);
    }
  }

  /** Plays on for so many seconds, so many times as fast as it was. */
  async advance(seconds: number, speed: number): Promise<void> {
    if (this.isLoading) return;
    if (this.nextEvent() === undefined && !this.hasEnded) await this.readOn();
    const next = this.nextEvent();
    if (next === undefined) return;
    const from = Number.isFinite(this.time) ? this.time : this.begin;
    const gap = Date.parse(next.at) - from;
    const by = seconds * speed * 1000;
    this.show(gap > LONGEST_GAP * speed * 1000 ? Date.parse(next.at) : from + by);
  }

  private get begin(): number {
    return Date.parse(this.record.events[0]?.at ?? "") || 0;
  }

  private show(time: number, seq = Number.POSITIVE_INFINITY): void {
    const state = this.live.state;
    const isBack = time < this.time || seq < state.lastSeq || state.lastSeq === 0;
    const next = isBack ? replayState(this.record, time, seq) : state;
    if (!isBack) playOn(next, this.record.events, time, seq);
    this.time = time;
    next.gauges = gaugesOf(next, this.lastStep, this.flows);
    this.live.restore(next);
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
    this.isLoading = true;
    try {
      if (this.lastSeq <= WHOLE) {
        this.record = { marks: [], events: await this.readAll() };
      } else {
        const marks = await this.deps.fetchMarks(this.id);
        const page = await this.deps.fetchEventsOfStep(this.id, Math.max(0, step - BEFORE), PAGE);
        this.record = { marks: marks.events, events: page.events };
      }
      this.time = Number.POSITIVE_INFINITY; // whatever is shown next is made anew
    } finally {
      this.isLoading = false;
    }
  }

  private async readAll(): Promise<RunEvent[]> {
    const events: RunEvent[] = [];
    for (;;) {
      const page = await this.deps.fetchEvents(this.id, events.at(-1)?.seq ?? 0, PAGE);
      events.push(...page.events);
      if (!page.has_more || page.events.length === 0) return events;
    }
  }

  private async readOn(): Promise<void> {
    this.isLoading = true;
    try {
      const { marks, events } = this.record;
      const page = await this.deps.fetchEvents(this.id, events.at(-1)?.seq ?? 0, PAGE);
      this.record = { marks, events: [...events, ...page.events].slice(-WHOLE) };
    } finally {
      this.isLoading = false;
    }
  }
}
