// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RunProgress } from "@/features/runs/live/RunProgress";
import { LiveRun } from "@/live/LiveRun";
import { useSelection } from "@/state/selection";
import { insideLoop } from "../fixtures/open";
import { aRun, aStage, someGauges } from "../fixtures/runs";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("a run that has not begun", () => {
  it("says what it waits for and for how long, and of steps nothing", () => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "starting", step: null, message: "starting Ray" }));
    render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });

    act(() => void vi.advanceTimersByTime(12_000));

    expect(screen.getByRole("status").textContent).toBe("Starting: starting Ray");
    expect(screen.getByTitle("Since this page was opened").textContent).toBe("12 s");
    expect(screen.queryByTestId("run-step")).toBeNull();
  });

  it("tells of steps once it runs", () => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "running", step: 3, steps_total: 12 }));
    render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });

    expect(screen.queryByRole("status")).toBeNull();
    expect(screen.getByTestId("run-step").textContent).toBe("3");
  });
});

describe("times of a run", () => {
  it("say over what they are the mean", () => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "running", step: 90, steps_total: 120 }));
    live.applyGauges(
      someGauges({ phase: "rl", step_seconds: 0.141, window_steps: 8, phase_step_seconds: 0.317 }),
    );
    render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });

    const time = screen.getByTitle(
      "Mean of the last 8 steps, without evaluations; of all steps of rl 317 ms",
    );
    expect(time.textContent).toBe("141 ms a step, last 8");
  });

  it("of one that ends while it is watched do not move with the clock, however slow the page is", () => {
    let now = Date.parse("2026-01-01T00:13:00Z");
    vi.spyOn(Date, "now").mockImplementation(() => {
      now += 1;
      return now;
    });
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "running", started_at: "2026-01-01T00:00:00Z" }));
    live.setConnection("live");
    render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });
    const ended = { seq: 1, at: "2026-01-01T00:12:43Z", run: "r", attempt: 1 };

    act(() =>
      live.applyEvents([{ ...ended, type: "run.state", state: "finished", message: null }]),
    );

    expect(screen.getByTitle("From its start to its end").textContent).toBe("12 min 43 s in all");
  });

  it("of one whose end nobody told are left out", () => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "failed", started_at: "2026-01-01T00:00:00Z", ended_at: null }));
    render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });

    expect(screen.queryByTitle("From its start to its end")).toBeNull();
  });

  it("of one that has ended say how long it took in all", () => {
    const live = new LiveRun("r");
    const started_at = "2026-01-01T00:00:00Z";
    live.setRun(aRun({ state: "finished", started_at, ended_at: "2026-01-01T00:12:43Z" }));
    render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });

    expect(screen.getByTitle("From its start to its end").textContent).toBe("12 min 43 s in all");
  });
});

it("the field that sets the pace is shown where no value of it is known to help", () => {
  const live = new LiveRun("r");
  live.setRun(aRun({ state: "running", step: 3 }));
  const stages = { "exact.score": aStage({ share: 0.9 }) };
  live.applyGauges(someGauges({ bottleneck: "exact.score", step_seconds: 2, stages }));
  render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });

  fireEvent.click(screen.getByRole("button", { name: "Check the reward" }));

  const { nodes, focus } = useSelection.getState();
  expect(nodes).toEqual(["exact"]);
  expect(focus).toMatchObject({ node: "exact", field: "source" });
});
