import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunEvent, StreamMessage } from "@/api/types";
import { LiveRun } from "@/live/LiveRun";
import { type ConnectionDeps, RunConnection, type SocketLike } from "@/live/RunConnection";
import { aRun } from "../fixtures/runs";

const RUN = aRun();

const event = (seq: number): RunEvent => ({
  seq,
  at: "2026-01-01T00:00:00Z",
  run: "r",
  attempt: 1,
  type: "metrics",
  node: "a",
  step: seq,
  metrics: { loss: seq },
});

class FakeSocket implements SocketLike {
  onopen = null;
  onerror = null;
  onmessage: SocketLike["onmessage"] = null;
  onclose: SocketLike["onclose"] = null;
  isClosed = false;

  constructor(readonly url: string) {}

  close(): void {
    this.isClosed = true;
  }

  say(message: StreamMessage): void {
    this.onmessage?.call(
      this as unknown as WebSocket,
      { data: JSON.stringify(message) } as MessageEvent,
    );
  }

  breakOff(code = 1006): void {
    this.onclose?.call(this as unknown as WebSocket, { code } as CloseEvent);
  }
}

/** As many events as a tail has here. */
const TAIL_HERE = 4;

function setup(history: RunEvent[]) {
  const sockets: FakeSocket[] = [];
  const asked: number[] = [];
  const tailed: number[] = [];
  const deps: ConnectionDeps = {
    openSocket: (url) => {
      const socket = new FakeSocket(url);
      sockets.push(socket);
      return socket;
    },
    fetchEvents: async (_id, { after = 0, before, limit = 0 }) => {
      if (before) {
        tailed.push(limit);
        const events = history.slice(-TAIL_HERE);
        return { events, last_seq: history.at(-1)?.seq ?? 0, has_more: false };
      }
      asked.push(after);
      const events = history.filter((one) => one.seq > after).slice(0, Math.min(limit, 3));
      const last = history.at(-1)?.seq ?? 0;
      return { events, last_seq: last, has_more: (events.at(-1)?.seq ?? last) < last };
    },
    fetchMarks: async () => {
      const marks = history.filter((one) => one.type !== "metrics");
      return { seq: history.at(-1)?.seq ?? 0, events: marks };
    },
    fetchRun: async () => RUN,
    random: () => 1,
  };
  const live = new LiveRun("r");
  const connection = new RunConnection(live, deps);
  return { sockets, asked, tailed, live, connection, last: () => sockets.at(-1) as FakeSocket };
}

describe("the connection to a run", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("location", { protocol: "http:", host: "localhost" });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("brings a short history whole, then the stream from there", async () => {
    const { live, connection, asked, last } = setup([1, 2, 3].map(event));

    connection.start();
    await vi.advanceTimersByTimeAsync(0);
    last().say({ kind: "hello", run: RUN, seq: 3 });
    last().say({ kind: "events", events: [event(4)] });

    expect(asked).toEqual([]);
    expect(last().url).toBe("ws://localhost/api/runs/r/stream?after=3");
    expect(live.state.lastSeq).toBe(4);
    expect(live.state.isWhole).toBe(true);
    expect(live.connection).toBe("live");
    connection.stop();
  });

  it("of a long history it brings the newest events, and of the others what is worth knowing", async () => {
    const begun: RunEvent = {
      ...event(1),
      type: "phase",
      phase: "warm-up",
      index: 0,
      state: "started",
    };
    const { live, connection, last } = setup([begun, ...[2, 3, 4, 5, 6, 7, 8].map(event)]);

    connection.start();
    await vi.advanceTimersByTimeAsync(0);

    expect(live.state.isWhole).toBe(false);
    expect(live.state.phases.map(({ name }) => name)).toEqual(["warm-up"]);
    expect(live.state.series.get("loss")?.get("a")?.steps).toEqual([5, 6, 7, 8]);
    expect(last().url).toContain("after=8");
    connection.stop();
  });

  it("a gap in the stream is closed page by page", async () => {
    const history = [event(1)];
    const { connection, live, asked, last } = setup(history);
    connection.start();
    await vi.advanceTimersByTimeAsync(0);

    history.push(...[2, 3, 4, 5, 6].map(event));
    last().breakOff();
    await vi.advanceTimersByTimeAsync(600);

    expect(asked).toEqual([1, 4]);
    expect(live.state.series.get("loss")?.get("a")?.steps).toEqual([1, 2, 3, 4, 5, 6]);
    connection.stop();
  });

  it("a broken stream is opened again after the last event, waiting longer each time", async () => {
    const { connection, sockets, live, last } = setup([event(1)]);
    connection.start();
    await vi.advanceTimersByTimeAsync(0);

    last().breakOff();
    expect(live.connection).toBe("reconnecting");
    await vi.advanceTimersByTimeAsync(499);
    expect(sockets).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2);
    expect(sockets).toHaveLength(2);

    last().breakOff();
    await vi.advanceTimersByTimeAsync(999);
    expect(sockets).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(2);
    expect(sockets).toHaveLength(3);
    connection.stop();
  });

  it("events that were missed meanwhile are fetched before the stream goes on", async () => {
    const history = [event(1)];
    const { connection, live, last } = setup(history);
    connection.start();
    await vi.advanceTimersByTimeAsync(0);
    last().say({ kind: "hello", run: RUN, seq: 1 });

    history.push(event(2), event(3));
    last().breakOff();
    await vi.advanceTimersByTimeAsync(600);

    expect(live.state.lastSeq).toBe(3);
    expect(last().url).toContain("after=3");
    connection.stop();
  });

  it("the end of a run is the end of the connection", async () => {
    const { connection, sockets, live, last } = setup([event(1)]);
    connection.start();
    await vi.advanceTimersByTimeAsync(0);

    last().say({ kind: "end", run: { ...RUN, state: "finished" } });
    last().breakOff(1000);
    await vi.advanceTimersByTimeAsync(60_000);

    expect(live.connection).toBe("ended");
    expect(live.run?.state).toBe("finished");
    expect(sockets).toHaveLength(1);
    connection.stop();
  });

  it("a socket that is silent for too long is given up", async () => {
    const { connection, sockets, last } = setup([event(1)]);
    connection.start();
    await vi.advanceTimersByTimeAsync(0);
    last().say({ kind: "hello", run: RUN, seq: 1 });

    await vi.advanceTimersByTimeAsync(40_000);

    expect(sockets[0]?.isClosed).toBe(true);
    expect(sockets.length).toBeGreaterThan(1);
    connection.stop();
  });

  it("a run that does not exist is not asked for again", async () => {
    const { connection, sockets, live, last } = setup([]);
    connection.start();
    await vi.advanceTimersByTimeAsync(0);

    last().breakOff(4404);
    await vi.advanceTimersByTimeAsync(60_000);

    expect(live.connection).toBe("failed");
    expect(sockets).toHaveLength(1);
    connection.stop();
  });
});
