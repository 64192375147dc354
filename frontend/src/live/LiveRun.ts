/**
 * One watched run: its state, and who wants to know of changes, by topic.
 *
 * Watchers are told late on purpose: status at once, all else at most 4 times a second and together, so that the
 * page is laid out and painted once for it. Values that change more often than a screen needs never reach React.
 */
import type { Gauges, RunEvent, RunSummary } from "@/api/types";
import { applyEvent, isFinal, TOPICS, type Topic } from "./reducer";

import { LiveState } from "./state";

export type Connection = "loading" | "live" | "reconnecting" | "ended" | "failed";

const FLOW_SHOWN = 1000;

export const TICK = 250;
const TICKS: Partial<Record<Topic, number>> = { samples: 2 };

function byTopic<T>(first: () => T): Record<Topic, T> {
  return Object.fromEntries(TOPICS.map((topic) => [topic, first()])) as Record<Topic, T>;
}

export class LiveRun {
  state = new LiveState();
  run: RunSummary | null = null;
  connection: Connection = "loading";
  heardAt: number = Date.now();
  /** Last event before the gauges that are on screen; stages that finished since then have just worked. */
  shownSeq = 0;
  private toldSeq = 0;
  /** By edge, the local time at which rows were last seen to have come. */
  private readonly flowedAt = new Map<string, number>();
  /** Edges that rows came over within the last second, as of the last gauges or the rest after them. */
  private flowing: ReadonlySet<string> = new Set();
  private flowTimer: ReturnType<typeof setTimeout> | undefined;

  private readonly versions = byTopic(() => 0);
  private readonly watchers = byTopic(() => new Set<() => void>());
  private readonly toldAt: Partial<Record<Topic, number>> = {};
  private readonly news = new Set<Topic>();
  private tickAt = Number.NEGATIVE_INFINITY;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {}

  applyEvents(events: readonly RunEvent[]): void {
    const topics = new Set<Topic>();
    const { isWhole } = this.state;
    for (const event of events) {
      const step = this.state.step;
      const topic = applyEvent(this.state, event);
      if (topic) topics.add(topic);
      if (topic === "status") topics.add("lines");
      if (step !== this.state.step || topic === "spans") topics.add("gauges");
      if (event.type === "run.state") this.noteState(event.at);
    }
    if (isWhole !== this.state.isWhole) topics.add("status");
    this.tell(...topics);
  }

  private noteState(at: string): void {
    const { state, message, error } = this.state;
    if (!this.run || !state || this.connection !== "live") return;
    this.run = { ...this.run, state, message, error, ended_at: isFinal(state) ? at : null };
  }

  /** After a jump no stage has just finished. */
  restore(state: LiveState, isJump = false): void {
    this.state = state;
    if (isJump) this.shownSeq = this.toldSeq = state.lastSeq;
    for (const topic of TOPICS) delete this.toldAt[topic];
    this.tell(...TOPICS);
  }

  applyGauges(gauges: Gauges): void {
    this.noteFlow(this.state.gauges, gauges);
    this.state.gauges = gauges;
    this.tell("gauges");
  }

  hasFlow(edge: string): boolean {
    return this.connection !== "ended" && this.flowing.has(edge);
  }

  /** Edges count their rows; the first gauges of all say nothing of when those came. */
  private noteFlow(before: Gauges | null, gauges: Gauges): void {
    if (!before || before.attempt !== gauges.attempt) return;
    const now = Date.now();
    for (const [edge, { rows }] of Object.entries(gauges.edges ?? {})) {
      if (rows > (before.edges?.[edge]?.rows ?? 0)) this.flowedAt.set(edge, now);
    }
    this.settleFlow(now);
    clearTimeout(this.flowTimer);
    this.flowTimer = setTimeout(() => {
      this.settleFlow(Date.now());
      this.tell("gauges");
    }, FLOW_SHOWN);
  }

  private settleFlow(now: number): void {
    const isRecent = ([, at]: [string, number]) => now - at < FLOW_SHOWN;
    this.flowing = new Set([...this.flowedAt].filter(isRecent).map(([edge]) => edge));
  }

  setRun(run: RunSummary): void {
    this.run = run;
    this.tell("status", "lines"); // lines: of which alerts a user took note
  }

  setConnection(connection: Connection): void {
    if (this.connection === connection) return;
    this.connection = connection;
    this.tell("status", "gauges");
  }

  readonly version = (topic: Topic): number => this.versions[topic];

  watch(topic: Topic, watcher: () => void): () => void {
    this.watchers[topic].add(watcher);
    return () => this.watchers[topic].delete(watcher);
  }

  close(): void {
    clearTimeout(this.flowTimer);
    clearTimeout(this.timer);
  }

  private tell(...topics: readonly Topic[]): void {
    for (const topic of topics) {
      if (topic === "status") this.tellNow(topic);
      else this.news.add(topic);
    }
    if (this.news.size === 0 || this.timer !== undefined) return;
    if (Date.now() - this.tickAt >= TICK) this.tick();
    else this.await();
  }

  private tick(): void {
    this.timer = undefined;
    this.tickAt = Date.now();
    for (const topic of [...this.news]) {
      const before = this.toldAt[topic] ?? Number.NEGATIVE_INFINITY;
      if (this.tickAt - before < TICK * ((TICKS[topic] ?? 1) - 0.5)) continue;
      this.toldAt[topic] = this.tickAt;
      this.news.delete(topic);
      this.tellNow(topic);
    }
    if (this.news.size > 0) this.await();
  }

  private await(): void {
    this.timer ??= setTimeout(() => this.tick(), this.tickAt + TICK - Date.now());
  }

  private tellNow(topic: Topic): void {
    this.versions[topic] += 1;
    if (topic === "gauges") {
      this.shownSeq = this.toldSeq;
      this.toldSeq = this.state.lastSeq;
    }
    for (const watcher of this.watchers[topic]) watcher();
  }
}
