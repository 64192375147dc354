// @vitest-environment jsdom
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RunProgress } from "@/features/runs/RunProgress";
import { LiveRun } from "@/live/LiveRun";
import { insideLoop } from "../fixtures/open";
import { aRun } from "../fixtures/runs";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

describe("a run that has not begun", () => {
  it("says what it waits for and for how long, and of steps nothing", () => {
    const live = new LiveRun("r");
    live.setRun(aRun({ state: "starting", step: null, message: "starting Ray" }));
    render(<RunProgress />, { wrapper: insideLoop({ live }).wrapper });

    act(() => void vi.advanceTimersByTime(12_000));

    expect(screen.getByRole("status").textContent).toBe("Starting: starting Ray");
    expect(screen.getByTitle("Since this page shows it").textContent).toBe("12 s");
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
