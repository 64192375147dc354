// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { Bodies } from "@/api/types";
import { chartData } from "@/features/charts/chartData";
import { ForkTree } from "@/features/runs/family/ForkTree";
import { isBetter, outcomeText } from "@/features/runs/family/outcome";
import type { Curve } from "@/live/curves";

type FamilyRun = Bodies["FamilyRun"];

const OUTCOME: Bodies["RunOutcome"] = {
  run: "a",
  metric: "probe.accuracy",
  title: "Accuracy",
  better: "higher",
  start: { step: 0, value: 0.25 },
  best: { step: 20, value: 0.75 },
  end: { step: 20, value: 0.75 },
};

function member(run: string, change: Partial<FamilyRun> = {}): FamilyRun {
  return {
    run,
    name: run,
    state: "finished",
    parent: null,
    from_step: null,
    step: 20,
    changes: [],
    outcome: { ...OUTCOME, run },
    ...change,
  };
}

function show(runs: FamilyRun[], current: string) {
  vi.spyOn(routes, "fetchFamily").mockResolvedValue({ runs });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return render(
    <QueryClientProvider client={queries}>
      <ForkTree run={current} />
    </QueryClientProvider>,
  );
}

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

describe("the tree of forks", () => {
  it("shows where each fork starts, what it changes and what came of it", async () => {
    const fork = member("second", { parent: "first", from_step: 10, changes: ["lr: 1 → 2"] });
    show([member("first"), fork, member("third", { parent: "second", from_step: 20 })], "second");

    const tree = await screen.findByRole("region", { name: "Forks" });
    expect(within(tree).getByText("from step 10 to 20")).toBeDefined();
    expect(within(tree).getByText("lr: 1 → 2")).toBeDefined();
    expect(within(tree).getAllByText("0.250 → 0.750")).toHaveLength(3);
    expect(within(tree).getByText("second").getAttribute("aria-current")).toBe("page");
    const links = within(tree).getAllByRole("link");
    expect(links.map((link) => link.getAttribute("href"))).toEqual(["/runs/first", "/runs/third"]);
  });

  it("is nothing for a run alone", async () => {
    const { container } = show([member("first")], "first");
    await vi.waitFor(() => expect(routes.fetchFamily).toHaveBeenCalled());
    expect(container.textContent).toBe("");
  });
});

describe("an outcome", () => {
  it("is its first and last reading", () => {
    expect(outcomeText(OUTCOME)).toBe("0.250 → 0.750");
    expect(outcomeText({ start: null, end: null })).toBe("");
  });

  it("is better in the direction of its metric", () => {
    expect(isBetter(OUTCOME)).toBe(true);
    expect(isBetter({ ...OUTCOME, better: "lower" })).toBe(false);
    expect(isBetter({ ...OUTCOME, start: OUTCOME.end })).toBeNull();
  });
});

describe("the curve of a parent", () => {
  it("goes on past the step of the fork, beside the curve of the fork", () => {
    const curve = (steps: number[], values: number[]): Curve => ({
      line: { steps, values, last: null, version: 0 },
      spread: null,
      width: 1,
    });
    const fork = curve([11, 12], [0.5, 0.6]);
    const parent = curve([10, 11, 12, 13], [0.1, 0.2, 0.3, 0.4]);

    const { steps, values } = chartData([fork], 0, [parent]);

    expect(steps).toEqual([10, 11, 12, 13]);
    expect(values[0]).toEqual([null, 0.5, 0.6, null]);
    expect(values[2]).toEqual([0.1, 0.2, 0.3, 0.4]);
  });
});
