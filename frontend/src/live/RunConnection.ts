/**
 * Brings the events of a run: those that are there, then the stream, and the stream again when it breaks.
 *
 *     the newest events, of a longer run the marks before them ──▶ socket (after=last seq) ──▶ end
 *                                                                  │ broken: wait, jittered, longer each time
 *                                                                  └──▶ what came since ──▶ socket
 */
import { ApiError } from "@/api/client";
import * as routes from "@/api/routes";
import { socketProtocols, TICKET_CHANGED } from "@/api/ticket";
import type { EventPage, MarksPage, StreamMessage } from "@/api/types";
import type { LiveRun } from "./LiveRun";
import { isFinal } from "./reducer";

const PAGE = 5000;
/** So many events stay in the page of a run that is opened; of what came before there are marks and curves. */
const TAIL = 5000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const NO_SUCH_RUN = 4404;
/** The server pings every 10 s; a socket that is silent for longer is dead. */
const SILENCE = 25_000;

export type SocketLike = Pick<WebSocket, "close" | "onopen" | "onmessage" | "onclose" | "onerror">;

export interface ConnectionDeps
  extends Pick<typeof routes, "fetchEvents" | "fetchMarks" | "fetchRun"> {
  openSocket: (url: string) => SocketLike;
  random: () => number;
}

const BROWSER: ConnectionDeps = {
  ...routes,
  openSocket: (url) => new WebSocket(url, socketProtocols()),
  random: Math.random,
};

export class RunConnection {
  private socket: SocketLike | null = null;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setInterval> | undefined;
  private readonly listening = new AbortController();
  private wait = FIRST_WAIT;
  private stopped = false;
  private loading: AbortController | null = null;

  constructor(
    private readonly live: LiveRun,
    private readonly deps: ConnectionDeps = BROWSER,
  ) {}

  start(): void {
    const { signal } = this.listening;
    globalThis.addEventListener?.("online", this.retryNow, { signal });
    globalThis.addEventListener?.(TICKET_CHANGED, this.retryNow, { signal });
    globalThis.document?.addEventListener("visibilitychange", this.onVisible, { signal });
    this.silenceTimer = setInterval(this.lookForSilence, 5000);
    void this.load();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.retryTimer);
    clearInterval(this.silenceTimer);
    this.loading?.abort();
    this.dropSocket();
    this.listening.abort();
  }

  private async load(): Promise<void> {
    this.loading?.abort();
    const loading = new AbortController();
    this.loading = loading;
    try {
      const isNew = this.live.state.lastSeq === 0;
      // Asked for at once: each answer takes a while, and none needs another.
      const [run, beginning] = await Promise.all([
        this.deps.fetchRun(this.live.id),
        isNew ? this.fetchBeginning(loading.signal) : null,
      ]);
      this.live.setRun(run);
      if (beginning && !loading.signal.aborted) this.begin(...beginning);
      let hasMore = !isNew;
      while (hasMore && !loading.signal.aborted) {
        const query = { after: this.live.state.lastSeq, limit: PAGE };
        const page = await this.deps.fetchEvents(this.live.id, query, loading.signal);
        this.live.applyEvents(page.events);
        hasMore = page.has_more && page.events.length > 0;
      }
      if (!loading.signal.aborted) this.open();
    } catch (error) {
      if (loading.signal.aborted) return;
      if (error instanceof ApiError && error.status === 404) this.live.setConnection("failed");
      else this.retryLater();
    }
  }

  private fetchBeginning(signal: AbortSignal) {
    const { id } = this.live;
    const tail = { before: Number.MAX_SAFE_INTEGER, limit: TAIL };
    return Promise.all([this.deps.fetchEvents(id, tail, signal), this.deps.fetchMarks(id, signal)]);
  }

  private begin(tail: EventPage, marks: MarksPage): void {
    const first = tail.events[0]?.seq ?? 1;
    if (first > 1) {
      this.live.state.isWhole = false;
      this.live.applyEvents(marks.events.filter((event) => event.seq < first));
    }
    this.live.applyEvents(tail.events);
  }

  private open(): void {
    if (this.stopped) return;
    this.dropSocket();
    const { protocol, host } = globalThis.location;
    const scheme = protocol === "https:" ? "wss" : "ws";
    const after = this.live.state.lastSeq;
    const id = encodeURIComponent(this.live.id);
    const socket = this.deps.openSocket(`${scheme}://${host}/api/runs/${id}/stream?after=${after}`);
    this.socket = socket;
    socket.onmessage = (message) => {
      if (socket === this.socket) this.read(JSON.parse(String(message.data)) as StreamMessage);
    };
    socket.onclose = (event) => {
      if (socket !== this.socket) return;
      this.socket = null;
      if (this.live.connection === "ended" || this.stopped) return;
      if (event.code === NO_SUCH_RUN) this.live.setConnection("failed");
      else this.retryLater();
    };
  }

  private read(message: StreamMessage): void {
    this.live.heardAt = Date.now();
    this.wait = FIRST_WAIT;
    switch (message.kind) {
      case "hello":
        this.live.setRun(message.run);
        this.live.setConnection("live");
        break;
      case "events":
        this.live.applyEvents(message.events);
        break;
      case "gauges":
        this.live.applyGauges(message.gauges);
        break;
      case "end":
        this.live.setRun(message.run);
        this.live.setConnection("ended");
        break;
      case "ping":
        break;
    }
  }

  private retryLater(): void {
    if (this.stopped) return;
    this.live.setConnection("reconnecting");
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(() => void this.load(), this.wait * this.deps.random());
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }

  /** After a resume the run goes on: an ended connection is opened again. */
  readonly retryNow = (): void => {
    if (this.stopped || (this.live.connection === "live" && this.socket)) return;
    if (this.live.connection === "ended" && isFinal(this.live.run?.state)) return;
    clearTimeout(this.retryTimer);
    void this.load();
  };

  reopen(): void {
    this.live.setConnection("loading");
    void this.load();
  }

  private readonly onVisible = (): void => {
    if (globalThis.document.visibilityState === "visible") this.retryNow();
  };

  private readonly lookForSilence = (): void => {
    if (this.live.connection !== "live" || Date.now() - this.live.heardAt < SILENCE) return;
    this.dropSocket();
    this.retryLater();
  };

  private dropSocket(): void {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }
}
