// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/client";
import * as routes from "@/api/routes";
import { ReportPage } from "@/app/ReportPage";
import { answersOf, type Experiment } from "@/features/runs/report/answers";

const MAIN: Experiment["results"][number] = {
  metric: "probe.accuracy",
  title: "Accuracy",
  better: "higher",
  is_main: true,
  start: { step: 0, value: 0.1 },
  best: { step: 70, value: 0.9 },
  end: { step: 80, value: 0.8 },
  rows: 100,
  error: 0.04,
  values: [
    { step: 0, value: 0.1 },
    { step: 70, value: 0.9 },
    { step: 80, value: 0.8 },
  ],
};

const FOUND: Experiment = {
  run: "a run",
  loop: "sums",
  description: null,
  state: "finished",
  error: null,
  hint: null,
  seed: 3,
  parent: null,
  changes: [],
  control: null,
  results: [MAIN],
  seeds: { runs: [{ run: "a run", seed: 3, end: 0.8 }], mean: 0.8, spread: null },
  controls: [],
  duration: {
    started_at: null,
    ended_at: null,
    seconds: 80,
    attempts: 1,
    steps: 80,
    phases: [{ name: "rl", seconds: 80, share: 1, steps: 80, is_evaluation: false }],
    stages: [
      { name: "actor.learn", seconds: 54, share: 0.6, steps: null, is_evaluation: false },
      { name: "probe.evaluate", seconds: 9, share: 0.1, steps: null, is_evaluation: true },
    ],
    written_tokens: 3600,
    learned_tokens: 4500,
  },
  spent: { hardware: "cpu", gpus: 0, hours: 0.02, hourly_price: null, cost: null },
  checkpoints: { best: 70, best_values: { "probe.accuracy": 0.9 }, kept: [70, 80] },
  alerts: [],
  good: [{ step: 80, node: "actor", prompt: "1+1=", completion: "2", target: "2", score: 1 }],
  bad: [{ step: 80, node: "actor", prompt: "1+2=", completion: "", target: "3", score: 0 }],
  predictions: [],
  bottleneck: "actor.learn",
  next: [{ action: "control", text: "Run a control." }],
  command: "coloop run 'a run/spec.yaml'",
};

const MEASURED = {
  controls: [],
  predicted: {
    steps: 0,
    phases: {},
    step_seconds: 0.4,
    stages: { "actor.learn": 0.1 },
    tokens_per_second: { "actor.learn": 900 },
    memory_bytes: { "actor.learn": 3 * 2 ** 30 },
  },
  measured: {
    steps: 0,
    phases: {},
    step_seconds: 0.5,
    stages: { "actor.learn": 0.3 },
    tokens_per_second: { "actor.learn": 300 },
    memory_bytes: { "actor.learn": 2 * 2 ** 30 },
  },
};

const answer = (question: string, change: Partial<Experiment> = {}) =>
  answersOf({ ...FOUND, ...change }).find((one) => one.question === question);

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

describe("answers of a run", () => {
  it("are ten", () => {
    expect(answersOf(FOUND)).toHaveLength(10);
  });

  it("say how good it was, and whether that is better than before", () => {
    expect(answer("Result")).toMatchObject({
      text: "probe.accuracy 0.100 → 0.800 ± 0.040, at best 0.900 in step 70",
      tone: "good",
    });
    const loss = { ...MAIN, better: "lower" as const };
    expect(answer("Result", { results: [loss] })?.tone).toBe("bad");
    expect(answer("Result", { results: [] })?.tone).toBe("open");
    expect(answer("Result", { error: "The disk is full." })?.text).toBe("The disk is full.");
  });

  it("say against what, and how sure that is", () => {
    expect(answer("Against what")).toMatchObject({
      tone: "open",
      more: { href: "/runs/a%20run/controls" },
    });
    const control = { kind: "frozen" as const, title: "", runs: 3, end: 0.5, spread: 0.02 };
    const led = { ...control, difference: 0.3, leads: true };
    expect(answer("Against what", { controls: [led] })).toMatchObject({
      text: "frozen 0.500 (the loop leads)",
      tone: "good",
    });
    const spread = { runs: FOUND.seeds?.runs ?? [], mean: 0.7, spread: 0.1 };
    expect(answer("How sure")?.text).toContain("One seed");
    expect(answer("How sure", { seeds: spread })?.text).toContain("0.700 ± 0.100");
  });

  it("say which checkpoint, and whether it is still there", () => {
    const checkpoints = { best: 40, best_values: {}, kept: [70, 80] };
    expect(answer("Which checkpoint")?.text).toBe("Step 70, the best");
    expect(answer("Which checkpoint", { checkpoints })?.text).toContain("no longer kept");
    expect(answer("Which checkpoint", { checkpoints: { ...checkpoints, kept: [] } })?.tone).toBe(
      "bad",
    );
  });

  it("say what it cost", () => {
    const spent = { hardware: "8xh100", gpus: 8, hours: 2, hourly_price: 3, cost: 6 };
    expect(answer("What it cost")?.text).toContain("no GPU");
    expect(answer("What it cost", { spent })?.text).toBe(
      "2.00 GPU-hours on 8xh100, 6.00 at 3 each",
    );
    expect(answer("What it cost", { spent: { ...spent, cost: null } })?.text).toContain("no price");
  });
});

describe("the page of a report", () => {
  const open = () =>
    render(
      <QueryClientProvider client={new QueryClient()}>
        <ReportPage id="a run" />
      </QueryClientProvider>,
    );

  it("shows texts, and what was predicted beside what was measured", async () => {
    vi.spyOn(routes, "fetchExperiment").mockResolvedValue(FOUND);
    vi.spyOn(routes, "fetchReport").mockResolvedValue(MEASURED);
    open();

    const rowOf = async (table: RegExp) => {
      const part = await screen.findByRole("table", { name: table });
      return within(within(part).getByRole("row", { name: /actor\.learn/ }));
    };
    const time = await rowOf(/^Time$/);
    expect(time.getByText("3 × too low")).toBeTruthy(); // 0.1 for 0.3
    expect((await rowOf(/Tokens/)).getByText("3 × too high")).toBeTruthy(); // 900 for 300
    expect((await rowOf(/Memory/)).getByText("1.5 × too high")).toBeTruthy(); // 3 GiB for 2
    expect(screen.getByRole("region", { name: "Bad texts, step 80" }).textContent).toContain(
      "(empty)",
    );
  });

  it("shows a run that has not ended, and copies it as Markdown", async () => {
    const none = new ApiError(404, "run.no_report", "none", null);
    vi.spyOn(routes, "fetchExperiment").mockResolvedValue({ ...FOUND, state: "running" });
    vi.spyOn(routes, "fetchReport").mockRejectedValue(none);
    vi.spyOn(routes, "fetchExperimentText").mockResolvedValue("# sums");
    const writeText = vi.fn().mockResolvedValue(undefined);
    vi.stubGlobal("navigator", { ...navigator, clipboard: { writeText } });
    open();

    fireEvent.click(await screen.findByRole("button", { name: "Copy as Markdown" }));

    await waitFor(() => expect(writeText).toHaveBeenCalledWith("# sums"));
    expect(screen.queryByRole("region", { name: "Predicted and measured" })).toBeNull();
    vi.unstubAllGlobals();
  });
});
