/**
 * One watched run: its state, and who wants to know of changes, by topic.
 *
 * Watchers are told late on purpose: status at once, gauges at most 4 times a second, charts 5. Values that
 * change more often than a screen needs never reach React.
 */
import type { Gauges, RunEvent, RunSummary } from "@/api/types";
import { applyEvent, type Topic } from "./reducer";
import { createLiveState, type LiveState } from "./state";

export type Connection = "loading" | "live" | "reconnecting" | "ended" | "failed";

/** For how long an edge is seen to flow after rows came. */
export const FLOW_SHOWN = 1000;

const INTERVALS: Record<Topic, number> = {
  status: 0,
  gauges: 250,
  series: 200,
  spans: 250,
  samples: 500,
  lines: 250,
};

export class LiveRun {
  readonly id: string;
  state: LiveState = createLiveState();
  /** Whether the state is made of every event; else of the newest, and of the marks of those before. */
  isWhole = true;
  run: RunSummary | null = null;
  connection: Connection = "loading";
  /** Local time of the newest message. */
  heardAt: number = Date.now();
  /** Last event before the gauges that are on screen; stages that finished since then have just worked. */
  shownSeq = 0;
  private toldSeq = 0;
  /** By edge, the local time at which rows were last seen to have come. */
  private readonly flowedAt = new Map<string, number>();
  private flowTimer: ReturnType<typeof setTimeout> | undefined;

  private readonly versions: Record<Topic, number> = {
    status: 0,
    gauges: 0,
    series: 0,
    spans: 0,
    samples: 0,
    lines: 0,
  };
  private readonly watchers: Record<Topic, Set<() => void>> = {
    status: new Set(),
    gauges: new Set(),
    series: new Set(),
    spans: new Set(),
    samples: new Set(),
    lines: new Set(),
  };
  private readonly toldAt: Partial<Record<Topic, number>> = {};
  private readonly timers: Partial<Record<Topic, ReturnType<typeof setTimeout>>> = {};

  constructor(id: string) {
    this.id = id;
  }

  applyEvents(events: readonly RunEvent[]): void {
    const topics = new Set<Topic>();
    for (const event of events) {
      const step = this.state.step;
      const topic = applyEvent(this.state, event);
      if (topic) topics.add(topic);
      if (topic === "status") topics.add("lines");
      if (step !== this.state.step || topic === "spans") topics.add("gauges");
    }
    // While the past is read, the run as the server told it is newer.
    if (topics.has("status") && this.run && this.state.state && this.connection === "live") {
      const { state, message, error } = this.state;
      this.run = { ...this.run, state, message, error };
    }
    for (const topic of topics) this.tell(topic);
  }

  /** Shows another state of the same run, such as one of its past. */
  restore(state: LiveState): void {
    this.state = state;
    for (const topic of Object.keys(this.versions) as Topic[]) this.tell(topic);
  }

  applyGauges(gauges: Gauges): void {
    this.noteFlow(this.state.gauges, gauges);
    this.state.gauges = gauges;
    this.tell("gauges");
  }

  /** Whether rows came over an edge within the last second. */
  hasFlow(edge: string): boolean {
    const at = this.flowedAt.get(edge);
    return at !== undefined && this.connection !== "ended" && Date.now() - at < FLOW_SHOWN;
  }

  /** Edges count their rows; the first gauges of all say nothing of when those came. */
  private noteFlow(before: Gauges | null, gauges: Gauges): void {
    if (!before || before.attempt !== gauges.attempt) return;
    const now = Date.now();
    for (const [edge, { rows }] of Object.entries(gauges.edges ?? {})) {
      if (rows > (before.edges?.[edge]?.rows ?? 0)) this.flowedAt.set(edge, now);
    }
    // What flowed comes to rest even where no more gauges come.
    clearTimeout(this.flowTimer);
    this.flowTimer = setTimeout(() => this.tell("gauges"), FLOW_SHOWN);
  }

  setRun(run: RunSummary): void {
    this.run = run;
    this.tell("status");
    this.tell("lines"); // of which alerts a user took note
  }

  setConnection(connection: Connection): void {
    if (this.connection === connection) return;
    this.connection = connection;
    this.tell("status");
    this.tell("gauges");
  }

  readonly version = (topic: Topic): number => this.versions[topic];

  watch(topic: Topic, watcher: () => void): () => void {
    this.watchers[topic].add(watcher);
    return () => this.watchers[topic].delete(watcher);
  }

  close(): void {
    clearTimeout(this.flowTimer);
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
  }

  private tell(topic: Topic): void {
    if (this.timers[topic] !== undefined) return;
    const wait = (this.toldAt[topic] ?? Number.NEGATIVE_INFINITY) + INTERVALS[topic] - Date.now();
    if (wait <= 0) this.tellNow(topic);
    else this.timers[topic] = setTimeout(() => this.tellNow(topic), wait);
  }

  private tellNow(topic: Topic): void {
    clearTimeout(this.timers[topic]);
    delete this.timers[topic];
    this.toldAt[topic] = Date.now();
    this.versions[topic] += 1;
    if (topic === "gauges") {
      this.shownSeq = this.toldSeq;
      this.toldSeq = this.state.lastSeq;
    }
    for (const watcher of this.watchers[topic]) watcher();
  }
}
