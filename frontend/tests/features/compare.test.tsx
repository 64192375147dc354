// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import type uPlot from "uplot";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { RunCurves, RunSeries, SpecChange } from "@/api/types";
import { lineOf, overlay } from "@/features/compare/OverlayChart";
import { SpecDifferences } from "@/features/compare/SpecDifferences";
import { StageSplit } from "@/features/compare/StageSplit";
import { askedRuns, differences } from "@/features/compare/useCompared";
import { isChangedSince } from "@/features/runs/list/RunStrip";
import { sparksOf } from "@/state/queries";
import { sparkPath } from "@/ui/Sparkline";
import { aRun } from "../fixtures/runs";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

function aCurve(change: Partial<RunSeries> = {}): RunSeries {
  const mean = change.mean ?? [1, 2, 3];
  return {
    node: "policy",
    metric: "reward/mean",
    step: [1, 2, 3],
    count: mean.map(() => 1),
    min: mean,
    max: mean,
    mean,
    last: mean,
    seconds: [10, 20, 30],
    tokens: [0, 0, 500],
    ...change,
  };
}

function someCurves(change: Partial<RunCurves> = {}): RunCurves {
  return {
    run: "a",
    seq: 1,
    attempt: 1,
    first_step: 1,
    last_step: 3,
    width: 1,
    stages: {},
    curves: [],
    series: [],
    ...change,
  };
}

const a = { run: aRun({ id: "a", name: "first" }), color: "red" };
const b = { run: aRun({ id: "b", name: "second" }), color: "blue" };

describe("curves of several runs on one axis", () => {
  it("stand by steps, by time, or by tokens, each place once", () => {
    expect(lineOf(aCurve(), "progress")).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(lineOf(aCurve(), "time")).toEqual([
      [10, 20, 30],
      [1, 2, 3],
    ]);
    expect(lineOf(aCurve(), "learned")).toEqual([
      [0, 500],
      [2, 3],
    ]);
    expect(lineOf(aCurve({ tokens: [null, null, null] }), "learned")).toEqual([[], []]);
  });

  it("keep gaps of their own and skip the places of others", () => {
    const first: uPlot.AlignedData = [
      [1, 3],
      [1, null],
    ];
    const second: uPlot.AlignedData = [
      [2, 3],
      [5, 6],
    ];

    expect(overlay([first, second])).toEqual([
      [1, 2, 3],
      [1, undefined, null],
      [undefined, 5, 6],
    ]);
    expect(overlay([])).toEqual([[]]);
  });
});

describe("what differs", () => {
  const change = (path: string, old: SpecChange["old"], now: SpecChange["new"]): SpecChange => ({
    path,
    words: `${path}: ${old} → ${now}`,
    where: path.replace("nodes.", ""),
    before: old === null ? "its default" : String(old),
    after: String(now),
    old,
    new: now,
  });

  it("has the first run's value where another run does not change it", () => {
    const lr = change("nodes.actor.lr", 0.001, 0.01);
    const steps = change("schedule.steps", null, 50);

    expect(differences([[lr], [lr, steps]])).toEqual([
      { path: "nodes.actor.lr", where: "actor.lr", values: ["0.001", "0.01", "0.01"] },
      {
        path: "schedule.steps",
        where: "schedule.steps",
        values: ["its default", "its default", "50"],
      },
    ]);
    expect(differences([[], []])).toEqual([]);
  });

  it("is shown once for runs that agree, and said to be nothing where nothing differs", async () => {
    const fetch = vi
      .spyOn(routes, "fetchChanges")
      .mockResolvedValue({ changes: [change("nodes.actor.lr", 1, 2)] });
    const c = { run: aRun({ id: "c", name: "third" }), color: "green" };
    const show = () =>
      render(
        <QueryClientProvider client={new QueryClient()}>
          <SpecDifferences compared={[a, b, c]} />
        </QueryClientProvider>,
      );
    show();

    const values = await screen.findAllByRole("definition");
    expect(values.map((value) => value.textContent)).toEqual(["1", "2"]);
    expect(screen.getByRole("img", { name: "third" }).closest("dd")).toBe(values[1]);
    expect(fetch.mock.calls).toEqual([
      ["a", { run: "b" }],
      ["a", { run: "c" }],
    ]);

    cleanup();
    fetch.mockResolvedValue({ changes: [] });
    show();
    expect(await screen.findByText(/The loops are the same/)).toBeTruthy();
  });
});

describe("where the time went", () => {
  it("is told in shares of each run's own stages", () => {
    const curves = [
      someCurves({ run: "a", stages: { "policy.learn": 30, "policy.generate": 10 } }),
      someCurves({ run: "b", stages: { "policy.learn": 5, "probe.evaluate": 5 } }),
    ];
    render(<StageSplit compared={[a, b]} curves={curves} />);

    const rows = screen.getAllByRole("row").slice(1);
    expect(rows.map((row) => row.querySelector("th")?.textContent)).toEqual([
      "policy.learn",
      "probe.evaluate",
      "policy.generate",
    ]);
    expect(rows[0]?.textContent).toContain("75 %");
    expect(rows[0]?.textContent).toContain("50 %");
    expect(rows[1]?.textContent).toContain("not in this run");
  });
});

it("an address names each run once, and six at most", () => {
  expect(askedRuns("?runs=a,b,a,")).toEqual(["a", "b"]);
  expect(askedRuns("?runs=a,b,c,d,e,f,g")).toHaveLength(6);
  expect(askedRuns("")).toEqual([]);
});

it("a small curve has gaps where values are missing, and dots between gaps", () => {
  expect(sparkPath([0, 1, null, 1, null, 0, 1], 60, 10)).toBe(
    "M0.0 10.0L10.0 0.0M30.0 0.0h0M50.0 10.0L60.0 0.0",
  );
  expect(sparkPath([2, 2], 10, 10)).toBe("M0.0 5.0L10.0 5.0");
  expect(sparkPath([null], 10, 10)).toBe("");
});

it("a run's small curve is that of its own metric", () => {
  const curves = [someCurves({ series: [aCurve({ node: "other", mean: [9] }), aCurve()] })];

  expect(sparksOf(curves, new Map([["a", "policy.reward/mean"]])).get("a")?.values).toEqual([
    1, 2, 3,
  ]);
  expect(sparksOf(curves, new Map([["a", "policy.kl"]])).size).toBe(0);
});

it("a loop has changed since a run where both are known and mean something else", () => {
  expect(isChangedSince(aRun({ spec_hash: "x" }), "x")).toBe(false);
  expect(isChangedSince(aRun({ spec_hash: null }), "x")).toBe(false);
  expect(isChangedSince(aRun({ spec_hash: "x" }), null)).toBe(false);
  expect(isChangedSince(aRun({ spec_hash: "x" }), "y")).toBe(true);
});
