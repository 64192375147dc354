// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/client";
import * as routes from "@/api/routes";
import { SweepPage } from "@/app/SweepPage";
import { byRank, namesOf } from "@/features/runs/sweep/names";
import { losingRuns } from "@/features/runs/sweep/StopLosers";
import type { Sweep, Variant } from "@/features/runs/sweep/SweepTable";
import { around, countRuns, triedOf, valuesIn } from "@/features/runs/sweep/tried";

vi.mock("@/features/runs/controls/ArmsChart", () => ({
  ArmsChart: ({ groups }: { groups: readonly { title: string }[] }) => (
    <p>drawn: {groups.map(({ title }) => title).join("; ")}</p>
  ),
}));

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const LR = "nodes.actor.training.optimizer.lr";

function aVariant(change: Partial<Variant> = {}): Variant {
  const run = {
    run: "r-1",
    name: "rates (lr 1e-05, seed 0)",
    seed: 0,
    state: "finished" as const,
    step: 30,
    steps_total: 30,
    steps: [0, 30],
    values: [0.1, 0.6],
    begins_at: 0,
    start: 0.1,
    end: 0.6,
  };
  return {
    values: { [LR]: 0.00001 },
    label: "lr 1e-05",
    runs: [run],
    start: 0.1,
    end: 0.6,
    spread: null,
    so_far: 0.6,
    rank: 1,
    ...change,
  };
}

function aSweep(variants: Variant[]): Sweep {
  return {
    sweep: "sums-sweep-1",
    loop: "sums",
    metric: "probe.accuracy",
    title: "Accuracy",
    better: "higher",
    fields: [LR],
    step: 30,
    variants,
  };
}

const [FIRST] = aVariant().runs;
const WAITING = { ...FIRST, run: "r-2", seed: 1, state: "queued" as const, step: null } as never;

describe("values to try", () => {
  it("are separated by commas; lists, objects and quoted texts are one value", () => {
    expect(valuesIn("1e-5, 3e-5")).toEqual([1e-5, 3e-5]);
    expect(valuesIn('true, grpo, "a, b", [1, 2], {"a": 1}')).toEqual([
      true,
      "grpo",
      "a, b",
      [1, 2],
      { a: 1 },
    ]);
    expect(valuesIn(" , ")).toEqual([]);
  });

  it("around a number are smaller and larger ones", () => {
    expect(around(0.0003)).toBe("0.0001, 0.0003, 0.0009");
    expect(around(8)).toBe("4, 8, 16");
    expect(around(1)).toBe("1, 2");
    expect(around("grpo")).toBeNull();
  });

  it("are counted with their seeds", () => {
    const fields = [
      { path: LR, text: "1, 2, 3" },
      { path: "run.keep", text: "1, 2" },
      { path: "", text: "" },
    ];
    expect(countRuns(fields, 2)).toBe(12);
    expect(countRuns([{ path: LR, text: "" }], 2)).toBe(0);
    expect(triedOf(fields)).toEqual({ [LR]: [1, 2, 3], "run.keep": [1, 2] });
  });
});

describe("a sweep", () => {
  it("names settings by what tells them apart", () => {
    expect(namesOf([LR, "run.keep"])).toEqual(["lr", "keep"]);
    expect(namesOf([LR, "nodes.judge.training.optimizer.lr"])).toEqual([
      "actor.training.optimizer.lr",
      "judge.training.optimizer.lr",
    ]);
  });

  it("has the best values first, and those without a reading last", () => {
    const ranks = [{ rank: null }, { rank: 2 }, { rank: 1 }];
    expect(byRank(ranks).map(({ rank }) => rank)).toEqual([1, 2, null]);
  });

  it("counts the runs that would be stopped", () => {
    const variants = [
      aVariant({ rank: 1, runs: [WAITING] }),
      aVariant({ rank: 2, runs: [FIRST as never, WAITING] }),
      aVariant({ rank: null, runs: [WAITING] }),
    ];
    expect(losingRuns({ variants }, 1)).toBe(1);
    expect(losingRuns({ variants }, 2)).toBe(0);
  });

  it("is a table and a chart, and stops the losers", async () => {
    const behind = aVariant({ label: "lr 3e-05", values: { [LR]: 3e-5 }, rank: 2, so_far: 0.2 });
    const found = aSweep([{ ...behind, runs: [FIRST as never, WAITING] }, aVariant()]);
    vi.spyOn(routes, "fetchSweep").mockResolvedValue(found);
    const stop = vi
      .spyOn(routes, "stopLosers")
      .mockRejectedValue(new ApiError(409, "sweep.no_losers", "none", null));
    const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
    render(
      <QueryClientProvider client={queries}>
        <SweepPage name="sums-sweep-1" />
      </QueryClientProvider>,
    );

    const table = await screen.findByRole("table", { name: "Values" });
    const rows = within(table).getAllByRole("row").slice(1);
    expect(rows.map((row) => row.textContent)).toEqual([
      expect.stringContaining("0.00001"),
      expect.stringContaining("0.00003"),
    ]);
    expect(screen.getByText("drawn: lr 1e-05; lr 3e-05")).toBeDefined();
    expect(screen.getByText("2 combinations, 3 runs, 2 ended")).toBeDefined();
    fireEvent.click(screen.getByRole("button", { name: "Stop the losers: 1 run" }));
    await waitFor(() => expect(stop).toHaveBeenCalledWith("sums-sweep-1", 1));
  });
});
