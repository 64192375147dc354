// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Line, Term, Terms } from "@/api/types";
import { FormulaPopover } from "@/features/hardware/formulas/FormulaPopover";
import { behind, closeFormula, termOf } from "@/features/hardware/formulas/formula";
import { formatAmount, piecesOf, treeOf } from "@/features/hardware/formulas/lines";
import { TermView } from "@/features/hardware/formulas/TermView";
import { formOf, formProblem, hardwareOf } from "@/features/hardware/gpuForm";
import { ModelSize } from "@/features/inspector/ModelSize";
import { describeHardware } from "@/state/commands/fields";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const explainNumbers = vi.hoisted(() => vi.fn());
vi.mock("@/api/routes", async (original) => ({
  ...(await original<typeof import("@/api/routes")>()),
  explainNumbers,
}));

const line = (depth: number, name: string, value: number, rest: Partial<Line> = {}): Line => ({
  depth,
  name,
  value,
  unit: "",
  formula: null,
  source: null,
  ...rest,
});

const WEIGHTS: Term = {
  value: 28,
  unit: "B",
  source: "ZeRO",
  lines: [
    line(0, "", 28, { formula: "states × (a + b)", unit: "B" }),
    line(1, "states", 4, { formula: "moments × 2" }),
    line(2, "moments", 2, { source: "optimizer.name" }),
    line(1, "a", 3),
    line(1, "b", 4, { source: "config.json" }),
  ],
};

const PART = { node: "actor", part: "weights" as const, stages: ["actor.learn"], bytes: 28 };
const TERMS: Terms = {
  parts: [
    { pool: "main", ...PART, bytes: 14, term: { ...WEIGHTS, value: 14 } },
    { pool: "main", ...PART, term: WEIGHTS },
  ],
  peaks: [],
  stages: [
    { stage: "actor.learn", phase: null, term: WEIGHTS },
    { stage: "actor.learn", phase: "warm-up", term: { ...WEIGHTS, value: 7 } },
  ],
  steps: [{ phase: "rl", term: WEIGHTS }],
  total: null,
  gpu_hours: null,
  cost: null,
};

beforeEach(() => explainNumbers.mockReset());
afterEach(() => {
  closeFormula();
  cleanup();
});

describe("a formula", () => {
  it("is a tree of what its names stand for", () => {
    const [states, a, b] = treeOf(WEIGHTS.lines);
    expect(states?.inside.map((one) => one.line.name)).toEqual(["moments"]);
    expect([a?.line.name, b?.line.name]).toEqual(["a", "b"]);
  });

  it("has what two formulas name below both, and all of a list", () => {
    const [whole, other] = treeOf([
      line(0, "", 9, { formula: "whole + a token of it" }),
      line(1, "whole", 5, { formula: "sum of part 1 to part 2" }),
      line(2, "part 1", 2, { formula: "a token × 2" }),
      line(3, "a token", 1),
      line(2, "part 2", 3),
      line(1, "a token of it", 4, { formula: "a token × 4" }),
    ]);
    const names = whole?.inside.map((one) => [one.line.name, one.inside.length]);
    expect(names).toEqual([
      ["part 1", 1],
      ["part 2", 0],
    ]);
    expect(other?.inside.map((one) => one.line.name)).toEqual(["a token"]);
  });

  it("is in pieces, signs apart from names", () => {
    expect(piecesOf("states × (key heads + b)").map(({ text }) => text)).toEqual([
      "states",
      " × ",
      "(",
      "key heads",
      " + ",
      "b",
      ")",
    ]);
    expect(piecesOf("log-probs ÷ 2").filter(({ isSign }) => isSign)).toEqual([
      { text: " ÷ ", isSign: true },
    ]);
  });

  it("has its amounts in their units", () => {
    expect(formatAmount(4, "B")).toBe("4 B");
    expect(formatAmount(2 ** 30, "B")).toBe("1.00 GiB");
    expect(formatAmount(989e12, "FLOP/s")).toBe("989 TFLOP/s");
    expect(formatAmount(3.35e12, "B/s")).toBe("3,350 GB/s");
    expect(formatAmount(1.3e-7, "s")).toBe("130 ns");
    expect(formatAmount(1234.5, "money")).toBe("1,234.50");
    expect(formatAmount(0.25, "")).toBe("0.25");
  });

  it("is found by what it is of: the part with its bytes, the stage in its phase", () => {
    const part = (bytes: number) => termOf(TERMS, { of: "part", pool: "main", ...PART, bytes });
    expect(part(28)?.value).toBe(28);
    expect(part(14)?.value).toBe(14);
    expect(termOf(TERMS, { of: "stage", stage: "actor.learn", phase: "warm-up" })?.value).toBe(7);
    expect(termOf(TERMS, { of: "stage", stage: "actor.learn", phase: "rl" })?.value).toBe(28);
    expect(termOf(TERMS, { of: "cost" })).toBeNull();
  });

  it("shows values with their sources, and opens what was computed", () => {
    render(<TermView title="Weights of actor" term={WEIGHTS} />);
    expect(screen.getByText("config.json")).toBeDefined();
    expect(screen.getByText("From: ZeRO")).toBeDefined();
    expect(screen.queryByText("optimizer.name")).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: /states/ }));
    expect(screen.getByText("optimizer.name")).toBeDefined();
  });

  it("is asked for by hover, and goes with Escape", async () => {
    explainNumbers.mockResolvedValue(TERMS);
    const { wrapper: Loop } = insideLoop();
    render(
      <QueryClientProvider client={new QueryClient()}>
        <Loop>
          <button {...behind({ of: "step", phase: "rl" }, "A step of rl")}>10 s</button>
          <FormulaPopover />
        </Loop>
      </QueryClientProvider>,
    );
    expect(screen.queryByRole("dialog")).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "10 s" }));
    const shown = await screen.findByRole("dialog", { name: "Formula: A step of rl" });
    await waitFor(() => expect(shown.textContent).toContain("states × (a + b)"));
    fireEvent.keyDown(document, { key: "Escape" });
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });
});

describe("the form of a GPU", () => {
  const own = {
    preset: null,
    gpu: "my-gpu",
    nodes: "1",
    gpusPerNode: "4",
    figures: { memory_gib: "48", bf16_tflops: "200", bandwidth: "900", link: "" },
    price: "1.5",
  };

  it("writes what was typed, and what was left out is not there", () => {
    expect(hardwareOf(own)).toEqual({
      nodes: 1,
      gpus_per_node: 4,
      gpu: "my-gpu",
      figures: { memory_gib: 48, bf16_tflops: 200, bandwidth: 900 },
      price_per_gpu_hour: 1.5,
    });
    const empty = { memory_gib: "", bf16_tflops: "", bandwidth: "", link: "" };
    expect(hardwareOf({ ...own, preset: "8xH100", figures: empty, price: "" })).toEqual({
      preset: "8xH100",
    });
  });

  it("says what is missing or wrong", () => {
    const problem = (part: Partial<typeof own>) => formProblem({ ...own, ...part }, () => false);
    expect(problem({})).toBeNull();
    expect(problem({ gpu: " " })).toBe("The GPU needs a name");
    expect(problem({ price: "two" })).toBe("two is not a positive number");
    expect(problem({ gpusPerNode: "0" })).toBe("Machines and GPUs are whole numbers");
    const figures = { ...own.figures, bandwidth: "" };
    expect(problem({ figures })).toMatch(/memory, speed and bandwidth are needed/);
    expect(formProblem({ ...own, figures }, () => true)).toBeNull();
  });

  it("replaces the machine and keeps the rest, and is filled from what is written", () => {
    const document = smallLoop();
    document.rest.hardware = { preset: "8xH100", memory_budget: 0.8 };
    const draft = structuredClone(document);
    describeHardware.recipe(draft, { catalog, values: hardwareOf(own) });
    expect(draft.rest.hardware).toEqual({ memory_budget: 0.8, ...hardwareOf(own) });
    expect(formOf(draft)).toEqual(own);
    expect(formOf(document).preset).toBe("8xH100");
  });
});

describe("the size of a model", () => {
  it("is told with the memory of its heaviest moment, or why it is not known", () => {
    const { wrapper, syncStore } = insideLoop();
    const gpu = {
      pool: "main",
      index: 0,
      capacity_bytes: 80 * 2 ** 30,
      usable_bytes: 72 * 2 ** 30,
      peak_bytes: 30 * 2 ** 30,
      peak_stage: "actor.learn",
      fits: true,
      parts: [
        { node: "actor", part: "weights" as const, bytes: 2 ** 30, stages: ["actor.learn"] },
        { node: "actor", part: "logits" as const, bytes: 2 ** 31, stages: ["actor.learn"] },
      ],
    };
    const estimate = {
      step_seconds: 1,
      bottleneck: "",
      parameters: { actor: 7_615_616_512 },
      gpus: [gpu],
      stages: [],
      rollout: {},
      unknown: [
        {
          node: "other",
          field: "model.path",
          found: "x",
          reason: "`x` is not known",
          suggestions: ["Qwen/Qwen2.5-7B"],
          nodes: ["other"],
        },
      ],
      guessed: [],
    };
    syncStore.setState({
      check: { report: { ok: true, diagnostics: [] }, estimate, plan: null, mode: null },
    });
    const { rerender } = render(<ModelSize node="actor" />, { wrapper });
    expect(document.body.textContent).toMatch(/7\.62B parameters; takes up to 3\.00 GiB of a/);
    rerender(<ModelSize node="other" />);
    expect(document.body.textContent).toMatch(/No parameters, memory or times: x is not known/);
    expect(document.body.textContent).toMatch(/Did you mean Qwen\/Qwen2\.5-7B/);
  });
});
