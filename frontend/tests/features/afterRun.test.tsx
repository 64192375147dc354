// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { JsonObject, RunEvent } from "@/api/types";
import { LiveBadge, useHasFailed } from "@/features/canvas/LiveBadge";
import { AlertList, LogPanel } from "@/features/runs/live/LogPanel";
import { RunActions } from "@/features/runs/live/RunActions";
import { RunBanner } from "@/features/runs/live/RunBanner";
import { RunProgress } from "@/features/runs/live/RunProgress";
import { findingOf, timesOf } from "@/features/runs/report/predicted";
import { LiveRun } from "@/live/LiveRun";
import { clearSelection, useSelection } from "@/state/selection";
import { insideLoop } from "../fixtures/open";
import { aRun, aStage, someGauges } from "../fixtures/runs";

const REPORT = {
  controls: [],
  predicted: {
    steps: 0,
    phases: {},
    step_seconds: 0.4,
    stages: { "actor.learn": 0.1, "actor.sync": 0.02 },
    tokens_per_second: { "actor.learn": 900 },
    memory_bytes: { "actor.learn": 3 * 2 ** 30 },
  },
  measured: {
    steps: 0,
    phases: {},
    step_seconds: 0.5,
    stages: { "actor.learn": 0.3, "actor.generate": 0.2 },
    tokens_per_second: { "actor.learn": 300 },
    memory_bytes: { "actor.learn": 2 * 2 ** 30 },
  },
};
const NOTHING = { steps: 0, phases: {}, stages: {}, tokens_per_second: {}, memory_bytes: {} };

function Marked() {
  return <i>{`${useHasFailed("actor")} ${useHasFailed("exact")}`}</i>;
}

function show(part: React.ReactNode, live = new LiveRun("r")) {
  const { wrapper: Wrapper, store } = insideLoop({ live });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Wrapper>{part}</Wrapper>
    </QueryClientProvider>,
  );
  return { live, store };
}

const alert = (seq: number, change: Partial<RunEvent> = {}): RunEvent =>
  ({
    seq,
    at: "2026-01-01T00:00:00Z",
    run: "r",
    attempt: 1,
    type: "alert",
    level: "warning",
    code: "doctor.no_update",
    node: "actor",
    step: seq,
    message: "Nothing is learned",
    hint: "Look at the reward",
    ...change,
  }) as RunEvent;

beforeEach(() => {
  vi.spyOn(routes, "startRun").mockResolvedValue(aRun({ id: "next" }));
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  clearSelection();
});

describe("a run that has ended", () => {
  function ended() {
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "finished", name: "mine", loop_id: "loop" }));
    return show(<RunActions onResumed={() => {}} />, live);
  }

  async function again(name: RegExp) {
    fireEvent.keyDown(screen.getByRole("button", { name: /Run again/ }), { key: "Enter" });
    fireEvent.click(await screen.findByRole("menuitem", { name }));
    await waitFor(() => expect(routes.startRun).toHaveBeenCalledTimes(1));
    const [body] = vi.mocked(routes.startRun).mock.lastCall ?? [{}];
    const { trust, ...asked } = body as JsonObject;
    expect(trust).toBe(false);
    return asked;
  }

  it("runs again as it was", async () => {
    const { store } = ended();

    const body = await again(/same seed/);

    const text = store.getState().text;
    expect(body).toEqual({ yaml: text, name: "mine", tags: [], loop_id: "loop" });
  });

  it("runs again with another seed", async () => {
    ended();

    const body = await again(/another seed/);

    expect(body.seed).toBeGreaterThan(0);
  });

  it("begins with how long a step took, what was furthest off, and why", () => {
    const said = (tokens: number, ...evaluated: string[]) =>
      findingOf(
        {
          ...REPORT,
          measured: { ...REPORT.measured, tokens_per_second: { "actor.learn": tokens } },
        },
        evaluated,
      );

    expect(said(300)).toBe(
      "A step took 500 ms, 25 % more than the 400 ms predicted. " +
        "The largest error is in actor.learn, 300 ms instead of 100 ms: it processed 300 tokens per second, not 900. " +
        "Peak memory was 2.00 GiB; 3.00 GiB was predicted.",
    );
    expect(said(900)).toContain(": it worked on 3 times the tokens.");
    expect(said(90)).toContain("not 900, though on 30 % of the tokens.");
    expect(said(300, "actor.learn")).not.toContain("largest error"); // an evaluation is in no step
  });

  it("names the phase and of how many steps the time is the mean", () => {
    const measured = { ...REPORT.measured, step_seconds: 1.617, steps: 400 };

    expect(findingOf({ ...REPORT, phase: "rl", measured })).toMatch(
      /^A step of rl took 1\.62 s \(mean of 400 steps\), 4 times the 400 ms predicted\./,
    );
  });

  it("says that a prediction was right", () => {
    const right = { ...REPORT, measured: REPORT.predicted };

    expect(findingOf(right)).toBe("A step took 400 ms, as predicted (400 ms).");
    expect(findingOf({ controls: [], predicted: NOTHING, measured: NOTHING })).toBe("");
  });

  it("a stage that did not run, or was not predicted, is said to be so", () => {
    const rows = timesOf(REPORT).map(({ name, predicted, measured }) => [
      name,
      predicted,
      measured,
    ]);

    expect(rows).toEqual([
      ["A step", 0.4, 0.5],
      ["actor.learn", 0.1, 0.3],
      ["actor.generate", null, 0.2],
      ["actor.sync", 0.02, null],
    ]);
  });
});

describe("alerts", () => {
  it("are listed with their next step, one for each reason", () => {
    const { live } = show(<AlertList />);

    act(() => live.applyEvents([alert(1), alert(2), alert(3, { code: "doctor.kl", node: null })]));

    const items = within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("listitem");
    expect(items).toHaveLength(2);
    expect(items[1]?.textContent).toContain("Next: Look at the reward");
    expect(items[1]?.textContent).toContain("2 times, last at step 2");
  });

  it("the gravest stand first, whatever came after", () => {
    const { live } = show(<AlertList />);
    const grave = alert(1, { code: "doctor.update", level: "error", message: "no weight moves" });

    act(() => live.applyEvents([grave, alert(2)]));

    const items = within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("listitem");
    expect(items[0]?.textContent).toContain("no weight moves");
  });

  it("go when they hold no longer", () => {
    const { live } = show(<AlertList />);

    act(() => live.applyEvents([alert(1), alert(2, { cleared: true })]));

    expect(screen.queryByRole("list", { name: "Alerts" })).toBeNull();
    expect(live.state.lines).toHaveLength(2);
  });

  it("that a user took note of stand last, say so, and are counted on no node", async () => {
    const known = {
      ...{ code: "doctor.no_update", node: "actor", metric: null, state: "raised" as const },
      ...{ level: "warning" as const, message: "", hint: null, step: 1, seq: 1, told: 1 },
      ...{ raised_at: null, cleared_at: null, acknowledged_at: "2026-01-01T00:00:00Z" },
    };
    const note = vi.spyOn(routes, "acknowledgeAlert").mockResolvedValue(aRun({ alerts: [known] }));
    const { live } = show(
      <>
        <AlertList />
        <LiveBadge node="actor" />
      </>,
    );
    live.setRun(aRun());
    const other = alert(2, { code: "doctor.kl", node: null, message: "far away" });
    act(() => live.applyEvents([alert(1), other, alert(3)]));

    const button = { name: "Acknowledge: Nothing is learned" };
    fireEvent.click(await screen.findByRole("button", button));

    expect(await screen.findByText("acknowledged")).toBeTruthy();
    expect(note).toHaveBeenCalledWith("r", 1); // the event that raised it, not the last told
    const items = within(screen.getByRole("list", { name: "Alerts" })).getAllByRole("listitem");
    expect(items.map((item) => item.getAttribute("data-acknowledged"))).toEqual(["false", "true"]);
    expect(screen.queryByLabelText(/Alerts of actor/)).toBeNull();
  });

  it("stand on the node that they are of", () => {
    const { live } = show(<LiveBadge node="actor" />);

    act(() => live.applyEvents([alert(1)]));

    expect(screen.getByLabelText("Alerts of actor: 1")).toBeTruthy();
  });
});

describe("a run that failed", () => {
  it("marks the node at which it did", () => {
    const live = new LiveRun("r");
    const error = { code: "c", message: "out of memory", node: "actor", hint: "fewer rows" };
    live.setRun(aRun({ state: "failed", error: { stage: null, traceback: null, ...error } }));
    show(
      <>
        <LiveBadge node="actor" />
        <LiveBadge node="exact" />
        <Marked />
      </>,
      live,
    );

    expect(screen.getByLabelText("actor failed")).toBeTruthy();
    expect(screen.queryByLabelText("exact failed")).toBeNull();
    expect(screen.getByText("true false")).toBeTruthy();
  });
});

describe("progress", () => {
  const gauges = someGauges({
    step: 40,
    steps_total: 2400,
    step_seconds: 0.4,
    bottleneck: "actor.learn",
    stages: { "actor.learn": aStage({ share: 0.8 }), "actor.generate": aStage({ share: 0.1 }) },
  });

  it("says what is only the most that it can be", () => {
    const { live } = show(<RunProgress />);

    act(() => live.applyGauges({ ...gauges, is_bound: true }));

    expect(screen.getByText("of at most 2,400")).toBeTruthy();
  });

  it("a press on the bottleneck says why it is one, and opens no form", async () => {
    const { live } = show(<RunProgress />);
    act(() => live.applyGauges(gauges));

    fireEvent.click(screen.getByRole("button", { name: /actor\.learn sets the pace:/ }));

    const reason = await screen.findByRole("dialog", { name: "Bottleneck of the run" });
    expect(reason.textContent).toContain("actor.learn takes 80 % of a step of 400 ms");
    expect(within(reason).getByText("actor.generate")).toBeTruthy();
    expect(useSelection.getState().nodes).toEqual([]);
  });
});

describe("a run whose Ray did not start", () => {
  const failed = () => {
    const live = new LiveRun("r");
    const message = "the run could not be started: Ray ended while it started: the disk is full";
    live.setRun(
      aRun({
        id: "r",
        state: "failed",
        started_at: null,
        message,
        error: {
          code: "run.ray_not_started",
          message,
          hint: "Run it in one process instead: that needs no Ray.",
          traceback: "OSError: [Errno 28] No space left on device",
          node: null,
          stage: null,
        },
      }),
    );
    return live;
  };

  it("says why, shows the end of Ray's log, and runs in one process at a press", async () => {
    vi.spyOn(routes, "fetchRunSpec").mockResolvedValue({ yaml: "coloop: 1" } as never);
    show(<RunBanner />, failed());

    expect(screen.getByRole("alert").textContent).toContain("the disk is full");
    expect(screen.getByText("The end of Ray's log")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Run in one process" }));
    await waitFor(() => expect(routes.startRun).toHaveBeenCalled());
    expect(vi.mocked(routes.startRun).mock.calls[0]?.[0]).toMatchObject({
      yaml: "coloop: 1",
      in_one_process: true,
    });
  });

  it("has no report to offer, and its log says where the reason stands", () => {
    show(
      <>
        <RunActions onResumed={() => {}} />
        <LogPanel />
      </>,
      failed(),
    );
    expect(screen.queryByRole("button", { name: "Report" })).toBeNull();
    expect(screen.getByText("The log is empty")).toBeTruthy();
  });
});

describe("what the user's code printed", () => {
  it("stands in the log with its node, its step and all its lines", () => {
    const live = new LiveRun("r");
    live.applyEvents([
      {
        seq: 1,
        at: "2026-01-01T00:00:00Z",
        run: "r",
        attempt: 1,
        type: "log",
        level: "info",
        message: "before raise\n  second line",
        node: "mine",
        step: 7,
        detail: { printed: true },
      } as RunEvent,
    ]);
    show(<LogPanel />, live);

    const log = screen.getByRole("log");
    expect(within(log).getByRole("button", { name: "mine" })).toBeTruthy();
    expect(within(log).getByText("7")).toBeTruthy();
    const text = within(log).getByText(/before raise/);
    expect(text.textContent).toContain("before raise\n  second line");
    expect(text.className).toContain("whitespace-pre-wrap");
  });
});
