// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import { dataOf } from "@/features/runs/controls/ArmsChart";
import { ArmRuns, ArmsTable } from "@/features/runs/controls/ArmsTable";
import {
  bandOf,
  type ControlArm,
  type GroupRun,
  lineOf,
  shownRuns,
} from "@/features/runs/controls/arms";
import { ControlForm } from "@/features/runs/controls/ControlForm";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

function aGroupRun(change: Partial<GroupRun> = {}): GroupRun {
  return {
    run: "r-1",
    name: "r (frozen, seed 1)",
    seed: 1,
    state: "finished",
    step: 30,
    steps_total: 30,
    steps: [0, 10, 20, 30],
    values: [0.1, 0.2, 0.4, 0.6],
    begins_at: 10,
    start: 0.2,
    end: 0.6,
    ...change,
  };
}

function anArm(change: Partial<ControlArm> = {}): ControlArm {
  return {
    kind: "full",
    runs: [aGroupRun()],
    start: 0.2,
    end: 0.6,
    spread: null,
    ...change,
  };
}

describe("curves of an arm", () => {
  it("begin with the last reading before the arms differ", () => {
    expect(lineOf(aGroupRun())).toEqual({ steps: [0, 10, 20], values: [0.2, 0.4, 0.6] });
    expect(lineOf(aGroupRun({ begins_at: 15 }))).toEqual({
      steps: [0, 5, 15],
      values: [0.2, 0.4, 0.6],
    });
    expect(lineOf(aGroupRun({ begins_at: 0 })).steps).toEqual([0, 10, 20, 30]);
    expect(lineOf(aGroupRun({ steps: [], values: [] }))).toEqual({ steps: [], values: [] });
  });

  it("have a mean and a spread up to where the shortest run ends", () => {
    const band = bandOf([aGroupRun(), aGroupRun({ seed: 2, steps: [10, 20], values: [0.4, 0.8] })]);

    expect(band.steps).toEqual([0, 10]);
    expect(band.mean.map((one) => one.toFixed(2))).toEqual(["0.30", "0.60"]);
    expect((band.high[1] ?? 0) - (band.mean[1] ?? 0)).toBeCloseTo(0.2 * Math.SQRT2);
    expect(dataOf([band])).toHaveLength(4);
  });

  it("lie on the straight line between two readings of a run", () => {
    const band = bandOf([
      aGroupRun({ begins_at: 0, steps: [0, 10], values: [0, 1] }),
      aGroupRun({ begins_at: 0, steps: [0, 4, 10], values: [0, 0, 0] }),
    ]);

    expect(band.steps).toEqual([0, 4, 10]);
    expect(band.mean).toEqual([0, 0.2, 0.5]);
  });

  it("of one run have no spread", () => {
    expect(bandOf([aGroupRun()]).high).toEqual([null, null, null]);
    expect(bandOf([]).steps).toEqual([]);
  });

  it("are those of finished runs, while there is one", () => {
    const going = aGroupRun({ run: "going", state: "running" });

    expect(shownRuns(anArm({ runs: [going] }))).toEqual([going]);
    expect(shownRuns(anArm({ runs: [going, aGroupRun()] }))).toEqual([aGroupRun()]);
  });
});

describe("the table of a comparison", () => {
  it("says whether the whole loop leads by more than the spread", () => {
    const plain = anArm({ kind: "plain", end: 0.4, spread: 0.05 });
    const frozen = anArm({ kind: "frozen", end: 0.58, spread: 0.05 });
    render(
      <ArmsTable
        arms={[anArm(), plain, frozen]}
        verdicts={[
          { kind: "plain", difference: 0.25, leads: true },
          { kind: "frozen", difference: 0.02, leads: null },
        ]}
      />,
    );

    const row = (name: string) => within(screen.getByRole("row", { name: new RegExp(name) }));
    expect(row("Without the partners").getByText("yes")).toBeTruthy();
    expect(row("Without the partners").getByText("0.250")).toBeTruthy();
    expect(row("Partners frozen").getByText("needs two seeds")).toBeTruthy();
  });

  it("lists the runs with their progress", () => {
    const going = aGroupRun({ run: "going", state: "running", step: 4, end: null });
    render(<ArmRuns arms={[anArm({ kind: "frozen", runs: [going] })]} />);

    expect(screen.getByRole("link", { name: "seed 1" }).getAttribute("href")).toBe("/runs/going");
    expect(screen.getByText("step 4 of 30")).toBeTruthy();
  });
});

describe("the form of a control", () => {
  const CHOICES: Awaited<ReturnType<typeof routes.fetchControlChoices>> = {
    learner: "policy",
    learners: ["policy", "judge"],
    metric: "probe.accuracy",
    choices: [
      {
        kind: "frozen",
        title: "The partners do not learn.",
        has: true,
        says: "`judge` stays as it was when phase `rl` first starts.",
        changes: [],
      },
      {
        kind: "plain",
        title: "Without the partners.",
        has: true,
        says: "`judge` leaves the loop.",
        changes: [],
      },
      {
        kind: "no_tool",
        title: "No tool.",
        has: false,
        says: "`policy` calls no tool",
        changes: [],
      },
    ],
  };

  function show() {
    vi.spyOn(routes, "fetchControlChoices").mockResolvedValue(CHOICES);
    const start = vi.spyOn(routes, "startControl").mockResolvedValue({} as never);
    render(
      <QueryClientProvider client={new QueryClient()}>
        <ControlForm run="r" />
      </QueryClientProvider>,
    );
    return start;
  }

  it("starts the chosen kind over the seeds", async () => {
    const start = show();

    fireEvent.click(await screen.findByRole("radio", { name: /Without the partners/ }));
    fireEvent.change(screen.getByLabelText("Seeds"), { target: { value: "2" } });
    fireEvent.click(screen.getByRole("switch", { name: "Whole loop too" }));
    fireEvent.click(screen.getByRole("button", { name: "Run over 2 seeds" }));

    await waitFor(() =>
      expect(start).toHaveBeenCalledWith("r", {
        kind: "plain",
        seeds: 2,
        full: false,
        trust: false,
        force: false,
      }),
    );
  });

  it("offers only what the loop has, and says why not the others", async () => {
    show();

    expect(await screen.findAllByRole("radio")).toHaveLength(2);
    expect(screen.getByText(/policy calls no tool/)).toBeTruthy();
    fireEvent.change(screen.getByLabelText("Seeds"), { target: { value: "many" } });
    expect(screen.getByRole("button", { name: /Run over/ }).hasAttribute("disabled")).toBe(true);
  });
});
