// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { Bodies, SampleRow } from "@/api/types";
import { FinalNumbers } from "@/features/compare/FinalNumbers";
import { differenceOf, finalRows, samePrompts, textOf } from "@/features/compare/finals";
import { SamplesBeside } from "@/features/compare/SamplesBeside";
import { catalog } from "../fixtures/loops";
import { aRun } from "../fixtures/runs";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const A = aRun({ id: "a", name: "first", metrics: { "actor.kl": 0.5, "probe.accuracy": 0.5 } });
const B = aRun({ id: "b", name: "second", metrics: { "actor.kl": 0.25, "probe.accuracy": 0.75 } });
const COMPARED = [
  { run: A, color: "red" },
  { run: B, color: "blue" },
];

function anOutcome(run: string, end: number): Bodies["RunOutcome"] {
  return {
    run,
    metric: "probe.accuracy",
    title: "Accuracy",
    better: "higher",
    start: { step: 0, value: 0.1 },
    best: { step: 9, value: end },
    end: { step: 9, value: end },
  };
}

function aSample(step: number, prompt: unknown, completion: string): SampleRow {
  return { seq: step, step, prompt, completion, reward: 1, scores: {}, has_tokens: false } as never;
}

function show(part: React.ReactNode) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(<QueryClientProvider client={queries}>{part}</QueryClientProvider>);
}

describe("final numbers", () => {
  it("have the metric of the probe first, and differences from the first run", async () => {
    vi.spyOn(routes, "fetchOutcomes").mockResolvedValue({
      outcomes: [anOutcome("a", 0.5), anOutcome("b", 0.75)],
    });
    show(<FinalNumbers catalog={catalog} compared={COMPARED} />);

    await screen.findAllByText("from 0.100");
    const rows = within(screen.getByRole("table")).getAllByRole("row");
    expect(rows[1]?.textContent).toContain("probe.accuracy");
    expect(rows[1]?.textContent).toContain("+0.250");
    expect(rows[2]?.textContent).toContain("actor.kl");
    expect(rows[2]?.textContent).toContain("-0.250");
  });

  it("are empty where a run has not measured", () => {
    const [row] = finalRows(catalog, [A, aRun({ id: "c" })], []);
    expect(row?.values).toEqual([0.5, null]);
    expect(differenceOf([0.5, null], 1)).toBeNull();
    expect(differenceOf([0.5, 0.75], 0)).toBeNull();
    expect(differenceOf([0.5, 0.75], 1)).toBe(0.25);
  });
});

describe("samples of the same prompt", () => {
  it("are the newest ones of each run", () => {
    const chat = [{ role: "user", content: "1+1=" }];
    const found = samePrompts([
      [aSample(1, "1+1=", "old"), aSample(5, "1+1=", "2"), aSample(5, "2+2=", "4")],
      [aSample(3, chat, "11")],
    ]);

    expect(found).toHaveLength(1);
    expect(found[0]?.samples.map((row) => row?.completion)).toEqual(["2", "11"]);
    expect(textOf(chat)).toBe("1+1=");
    expect(textOf({ odd: true })).toBe("");
  });

  it("stand side by side", async () => {
    const rows = { a: [aSample(5, "1+1=", "two")], b: [aSample(3, "1+1=", "eleven")] };
    vi.spyOn(routes, "fetchSamples").mockImplementation(async (id) => ({
      rows: rows[id as "a" | "b"],
      steps: [],
    }));
    show(<SamplesBeside compared={COMPARED} />);

    const part = await screen.findByRole("region", { name: "Samples of the same prompt" });
    expect(within(part).getByRole("article", { name: "first" }).textContent).toContain("two");
    expect(within(part).getByRole("article", { name: "second" }).textContent).toContain("eleven");
    expect(within(part).getByText("step 5, reward 1")).toBeDefined();
  });
});
