// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CheckAnswer, FitAnswer, GpuEstimate, PredictedTime } from "@/api/types";
import { fromSpec, toSpec } from "@/document/convert";
import { HardwareBar } from "@/features/hardware/HardwareBar";
import { HardwareView } from "@/features/hardware/HardwareView";
import {
  fullestStage,
  idleShare,
  limitOf,
  mainPhase,
  poolsOf,
  roleLabel,
  rolesIn,
  stepShares,
} from "@/features/hardware/lanes";
import { MemoryPanel } from "@/features/hardware/MemoryPanel";
import { StepSplit, stageInk } from "@/features/hardware/StepSplit";
import { giveUp, moveTo, PAUSE_MILLISECONDS, useTrial } from "@/features/hardware/useBudget";
import { decidedText } from "@/features/inspector/form/FieldRow";
import { overOf, worstOf } from "@/lib/estimate";
import { applyFit } from "@/state/commands/applyChanges";
import { setHardware } from "@/state/commands/fields";
import { placeNode, resizePool } from "@/state/commands/pools";
import { isSolvable, locksOf, setLock } from "@/state/document/locks";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const fitLoop = vi.hoisted(() => vi.fn());
vi.mock("@/api/routes", async (original) => ({
  ...(await original<typeof import("@/api/routes")>()),
  fitLoop,
}));

const GIB = 2 ** 30;

const gpu = (pool: string, index: number, fits = true): GpuEstimate => ({
  pool,
  index,
  capacity_bytes: 80 * GIB,
  usable_bytes: 72 * GIB,
  peak_bytes: (fits ? 50 : 90) * GIB,
  peak_stage: "actor.learn",
  fits,
  parts: [
    { node: "actor", part: "weights", bytes: 20 * GIB, stages: ["actor.learn", "actor.generate"] },
    { node: "actor", part: "logits", bytes: (fits ? 30 : 70) * GIB, stages: ["actor.learn"] },
  ],
});

const TIME: PredictedTime = {
  main: "rl",
  total_seconds: 100,
  gpu_hours: null,
  corrections: [],
  cost: null,
  memory_band: { least: 0.8, most: 1.2 },
  time_band: { least: 0.7, most: 1.4 },
  phases: [
    {
      name: "rl",
      steps: 10,
      step_seconds: 10,
      seconds: 100,
      stages: ["actor.generate", "judge.score", "actor.learn"],
      spans: [
        { stage: "actor.generate", pool: "main", start: 0, end: 4 },
        { stage: "judge.score", pool: "other", start: 4, end: 5 },
        { stage: "actor.learn", pool: "main", start: 5, end: 10 },
      ],
    },
  ],
};

const check = (gpus: GpuEstimate[]): CheckAnswer => ({
  report: { ok: true, diagnostics: [] },
  estimate: {
    step_seconds: 10,
    bottleneck: "actor.learn",
    parameters: {},
    gpus,
    stages: [],
    rollout: {},
    unknown: [],
    guessed: [],
  },
  time: TIME,
  budget: 0.9,
  plan: null,
  mode: "online",
});

const answer = (budget: number): FitAnswer =>
  ({
    fits: true,
    refusal: null,
    budget_fraction: budget,
    changes: [],
    edits: [{ op: "set", path: "hardware.memory_budget", value: budget }],
    ways: [],
    ruled_out: [],
    after: check([gpu("main", 0)]).estimate,
    after_time: { ...TIME, phases: [{ ...TIME.phases[0], step_seconds: 8 }] },
  }) as unknown as FitAnswer;

const View = () => (
  <QueryClientProvider client={new QueryClient()}>
    <HardwareView />
  </QueryClientProvider>
);

const Bar = () => (
  <QueryClientProvider client={new QueryClient()}>
    <HardwareBar />
  </QueryClientProvider>
);

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  fitLoop.mockReset();
});
afterEach(() => {
  giveUp();
  cleanup();
  vi.useRealTimers();
});

describe("the budget that is tried", () => {
  it("is asked for once it rests, and the last move wins", async () => {
    const late: ((found: FitAnswer) => void)[] = [];
    fitLoop.mockImplementation(() => new Promise((resolve) => late.push(resolve)));

    moveTo(0.5, {});
    moveTo(0.6, {});
    await vi.advanceTimersByTimeAsync(PAUSE_MILLISECONDS);
    moveTo(0.7, {});
    await vi.advanceTimersByTimeAsync(PAUSE_MILLISECONDS);
    expect(fitLoop.mock.calls.map(([body]) => body.budget_fraction)).toEqual([0.6, 0.7]);
    late[1]?.(answer(0.7));
    await vi.advanceTimersByTimeAsync(0);
    late[0]?.(answer(0.6));
    await vi.advanceTimersByTimeAsync(0);

    expect(useTrial.getState().answer?.budget_fraction).toBe(0.7);
  });

  it("leaves no trace when it is given up, on whatever way the answer is", async () => {
    let found: (one: FitAnswer) => void = () => {};
    fitLoop.mockImplementation(() => new Promise((resolve) => (found = resolve)));
    moveTo(0.5, {});
    await vi.advanceTimersByTimeAsync(PAUSE_MILLISECONDS);

    giveUp();
    found(answer(0.5));
    await vi.advanceTimersByTimeAsync(0);

    expect(useTrial.getState()).toMatchObject({ budget: null, answer: null });
  });

  it("moves in the bar, is put back by Escape, and applied as one step of the history", async () => {
    fitLoop.mockImplementation(async ({ budget_fraction }) => answer(budget_fraction));
    const { wrapper, store, syncStore } = insideLoop();
    syncStore.setState({ check: check([gpu("main", 0)]) });
    render(<Bar />, { wrapper });
    const slider = screen.getByRole("slider", { name: "Memory budget" });
    expect(screen.getByRole("region", { name: "Predicted step" }).textContent).toContain("10.0 s");

    fireEvent.change(slider, { target: { value: "0.5" } });
    await vi.advanceTimersByTimeAsync(PAUSE_MILLISECONDS);
    await waitFor(() => expect(screen.getByText("−2.00 s")).toBeDefined());
    fireEvent.keyDown(slider, { key: "Escape" });
    expect(slider).toHaveProperty("value", "0.9");
    expect(store.getState().history.past).toHaveLength(0);

    fireEvent.change(slider, { target: { value: "0.5" } });
    await vi.advanceTimersByTimeAsync(PAUSE_MILLISECONDS);
    await waitFor(() => expect(screen.getByText("−2.00 s")).toBeDefined());
    fireEvent.click(screen.getByRole("button", { name: "Apply" }));
    expect(store.getState().history.past.map((entry) => entry.label)).toEqual([
      "Fit to 50 % of the memory",
    ]);
    expect(toSpec(store.getState().document).hardware).toMatchObject({ memory_budget: 0.5 });
    store.undo();
    expect(toSpec(store.getState().document)).toEqual(toSpec(smallLoop()));
  });

  it("what is over offers the fix as a button", () => {
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: check([gpu("main", 0, false)]) });
    render(<Bar />, { wrapper });

    expect(screen.getByRole("button", { name: "Make it fit" })).toBeDefined();
    expect(screen.getByRole("img", { name: /over budget/ })).toBeDefined();
  });
});

describe("what no run would take", () => {
  const VERDICT = "3.18 GiB over on main. The smallest that fits is 43% of each GPU, 34 GiB.";
  const way = { touches: "budget" as const, title: "Allow 43% of the memory", reason: "43%" };
  const failed = (budget: number): FitAnswer => ({
    ...answer(budget),
    fits: false,
    verdict: VERDICT,
    ways: [
      {
        ...way,
        unlocks: [],
        step_seconds: 12,
        peak_bytes: 33 * GIB,
        over_bytes: 0,
        refusal: null,
        edits: [],
      },
    ],
    ruled_out: [{ usual: "pools", title: "Generate and learn apart", reason: "there is one GPU" }],
    after: check([gpu("main", 0, false)]).estimate as FitAnswer["after"],
  });

  it("is promised no time: the bar says the least that fits", async () => {
    fitLoop.mockImplementation(async ({ budget_fraction }) => failed(budget_fraction));
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: check([gpu("main", 0)]) });
    render(<Bar />, { wrapper });

    fireEvent.change(screen.getByRole("slider", { name: "Memory budget" }), {
      target: { value: "0.38" },
    });
    await vi.advanceTimersByTimeAsync(PAUSE_MILLISECONDS);

    const step = screen.getByRole("region", { name: "Predicted step" });
    await waitFor(() => expect(step.isConnected ? step.textContent : "").not.toMatch(/10\.0 s/));
    const told = screen.getByRole("region", { name: "Predicted step" }).textContent;
    expect(told).toContain("Does not fit");
    expect(told).toContain("The smallest that fits is 43%");
    expect(told).not.toMatch(/[−+]\d/);
    expect(screen.getByRole("button", { name: "Apply" })).toHaveProperty("ariaDisabled", "true");
  });

  it("is promised no time either where it fits and is refused", async () => {
    const refusal = "`run` refuses it: an engine over 2 GPUs";
    fitLoop.mockImplementation(async ({ budget_fraction }) => ({
      ...answer(budget_fraction),
      refusal,
    }));
    const { wrapper, syncStore } = insideLoop();
    const found = check([gpu("main", 0)]);
    const refused = {
      code: "run.not_yet_runnable",
      severity: "warning" as const,
      message: "not yet runnable: an engine over 2 GPUs",
      fixes: [],
    };
    syncStore.setState({ check: { ...found, report: { ok: true, diagnostics: [refused] } } });
    render(<Bar />, { wrapper });
    expect(screen.getByText(/not runnable/).parentElement?.title).toBe(
      "Not yet runnable: an engine over 2 GPUs",
    );

    fireEvent.change(screen.getByRole("slider", { name: "Memory budget" }), {
      target: { value: "0.5" },
    });
    await vi.advanceTimersByTimeAsync(PAUSE_MILLISECONDS);

    const step = screen.getByRole("region", { name: "Predicted step" });
    await waitFor(() => expect(step.textContent).toContain("8.00 s"));
    expect(step.textContent).not.toMatch(/[−+]\d/);
  });

  it("has its ways shown and pointed at", async () => {
    fitLoop.mockImplementation(async () => failed(0.9));
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: check([gpu("main", 0, false)]) });
    render(<View />, { wrapper });
    await vi.advanceTimersByTimeAsync(400);

    const scrolled = vi.fn();
    Element.prototype.scrollIntoView = scrolled;
    fireEvent.click(await screen.findByRole("button", { name: "See the way to fit" }));

    expect(document.activeElement?.textContent).toContain("Allow 43% of the memory");
    expect(scrolled).toHaveBeenCalled();
    expect(screen.getByRole("status").textContent).toBe(VERDICT);
  });

  it("has its refusal told in place of a time where a way is refused", async () => {
    const refusal = "`run` refuses it: an engine over 8 GPUs";
    const refused = failed(0.9).ways.map((one) => ({ ...one, refusal }));
    fitLoop.mockImplementation(async () => ({ ...failed(0.9), ways: refused }));
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: check([gpu("main", 0, false)]) });
    render(<View />, { wrapper });
    await vi.advanceTimersByTimeAsync(400);

    const ways = await screen.findByRole("list", { name: "Ways to make it fit" });
    expect(ways.textContent).toContain(
      "fits in 33.0 GiB, but `run` refuses it: an engine over 8 GPUs",
    );
    expect(ways.textContent).not.toContain("step 12");
  });

  it("has ways that only come closer called that", async () => {
    const closer = failed(0.9).ways.map((one) => ({ ...one, over_bytes: GIB, step_seconds: null }));
    fitLoop.mockImplementation(async () => ({ ...failed(0.9), ways: closer }));
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: check([gpu("main", 0, false)]) });
    render(<View />, { wrapper });
    await vi.advanceTimersByTimeAsync(400);

    expect(await screen.findByRole("button", { name: "See what would help" })).toBeDefined();
    expect(screen.getByRole("list", { name: "Ways to reduce memory" }).textContent).toContain(
      "still 1.00 GiB over",
    );
    expect(screen.queryByText(/to make it fit/)).toBeNull();
  });
});

describe("what is over", () => {
  it("is over by what is shown of it, in every moment", () => {
    const full = gpu("main", 0, false);

    expect(overOf(full)).toBe(18 * GIB);
    expect(overOf(full, "actor.learn")).toBe(18 * GIB);
    expect(overOf(full, "actor.generate")).toBe(0);
    expect(worstOf([gpu("main", 0), { ...gpu("main", 1), peak_bytes: GIB, fits: false }])).toEqual(
      expect.objectContaining({ index: 1 }),
    );
  });

  it("says so of the moment that is chosen in the table", () => {
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: check([gpu("main", 0, false)]) });
    render(<MemoryPanel />, { wrapper });
    expect(screen.getByText(/over by 18\.0 GiB/)).toBeDefined();

    fireEvent.click(screen.getByRole("button", { name: "actor.generate" }));

    expect(screen.queryByText(/over by/)).toBeNull();
    expect(screen.getByText(/over in actor\.learn/)).toBeDefined();
  });
});

describe("lanes and steps", () => {
  it("pools have their GPUs, counted through", () => {
    const { estimate } = check([gpu("a", 0), gpu("a", 1), gpu("b", 0)]);
    const pools = estimate ? poolsOf(estimate) : [];

    expect(pools.map(({ name, first, gpus }) => [name, first, gpus.length])).toEqual([
      ["a", 0, 2],
      ["b", 2, 1],
    ]);
    expect(fullestStage(gpu("a", 0), "generate")).toBe("actor.generate");
    expect(fullestStage(gpu("a", 0), "sync")).toBeNull();
  });

  it("roles, shares, limit and idle time come from the spans", () => {
    const phase = mainPhase(TIME);
    const roles = rolesIn("main", TIME);

    expect(roles.map((role) => roleLabel(role, roles))).toEqual(["generate", "learn"]);
    expect(roleLabel({ node: "judge", verb: "score" }, [...roles])).toBe("judge");
    expect(stepShares(phase).reduce((sum, one) => sum + one.seconds, 0)).toBe(10);
    expect(limitOf(phase)).toEqual({ stage: "actor.learn", share: 0.5 });
    expect(phase && idleShare("other", phase)).toBeCloseTo(0.9);
  });
});

describe("locks", () => {
  const path = "nodes.actor.training.micro_batch";

  it("are kept in the layout, beside what else is there, and go without a trace", () => {
    const spec = { ...toSpec(smallLoop()), layout: { frames: [{ name: "x" }] } };
    const document = fromSpec(spec);

    const locked = setLock(document, { path, isLocked: true });
    const open = setLock(locked, { path, isLocked: false });

    expect(toSpec(locked).layout).toMatchObject({ $locks: [path], frames: [{ name: "x" }] });
    expect(locksOf(fromSpec(toSpec(locked)))).toEqual([path]);
    expect(toSpec(open)).toEqual(toSpec(document));
    expect(
      toSpec(setLock(setLock(smallLoop(), { path, isLocked: true }), { path, isLocked: false })),
    ).toEqual(toSpec(smallLoop()));
  });

  it("mean something where the catalog says that the solver may set a field", () => {
    expect(isSolvable(catalog, "actor", "training.micro_batch")).toBe(true);
    expect(isSolvable(catalog, "actor", "training.mini_batch")).toBe(false);
    expect(isSolvable(catalog, "actor", "rollout.max_new_tokens")).toBe(false);
  });

  it("go with a way that takes them off", () => {
    const locked = setLock(smallLoop(), { path, isLocked: true });
    const edits = [
      { op: "set" as const, path: "nodes.actor.training.micro_batch", value: 2 },
      { op: "set" as const, path: "layout.$locks", value: [] },
    ];

    const fitted = applyFit(locked, { catalog, edits, unlocks: [path] });

    expect(locksOf(fitted)).toEqual([]);
    expect(fitted.nodes.actor).toMatchObject({ training: { micro_batch: 2 } });
    expect(toSpec(fitted).layout).not.toHaveProperty("$locks");
  });
});

describe("placing", () => {
  it("a role takes half of the largest pool where its own is not there yet", () => {
    const placed = placeNode(smallLoop(), {
      node: "actor",
      pool: "write",
      path: ["rollout", "pool"],
      laidOut: { main: 8 },
    });

    expect(toSpec(placed).hardware).toMatchObject({
      pools: { main: { gpus: 4 }, write: { gpus: 4 } },
    });
    expect(placed.nodes.actor).toMatchObject({ rollout: { pool: "write" } });
    const grown = resizePool(placed, {
      pool: "write",
      gpus: 5,
      other: "main",
      laidOut: { main: 4, write: 4 },
    });
    expect(toSpec(grown).hardware).toMatchObject({
      pools: { main: { gpus: 3 }, write: { gpus: 5 } },
    });
  });

  it("a preset takes the place of a machine that was described", () => {
    const hardware = { nodes: 1, gpus_per_node: 4, gpu: "L4-24GB", memory_budget: 0.8 };
    const described = fromSpec({ ...toSpec(smallLoop()), hardware });

    const changed = setHardware(described, { catalog, preset: "8xH100" });

    expect(toSpec(changed).hardware).toEqual({ memory_budget: 0.8, preset: "8xH100" });
  });

  it("says chosen values as people read them", () => {
    expect([null, true, "16384 tokens", 8].map(decidedText)).toEqual([
      "none",
      "yes",
      "16384 tokens",
      "8",
    ]);
  });
});

describe("the predicted step", () => {
  it("fills its bar, also where it takes less than a second", () => {
    const { wrapper } = insideLoop();
    const [phase] = TIME.phases;
    if (!phase) throw new Error("no phase");
    const spans = phase.spans.map((one) => ({
      ...one,
      start: one.start / 100,
      end: one.end / 100,
    }));
    const time = { ...TIME, phases: [{ ...phase, step_seconds: 0.1, spans }] };
    const { container } = render(<StepSplit time={time} isPromise={false} />, { wrapper });

    const widths = [...container.querySelectorAll<HTMLElement>("[aria-hidden] > [title]")].map(
      ({ style }) => Math.round(Number.parseFloat(style.width)),
    );
    expect(widths).toEqual([40, 10, 50]);
  });

  it("has dark text on what is light", () => {
    expect(["actor.generate", "actor.learn", "actor.sync"].map(stageInk)).toEqual([
      "var(--surface)",
      "var(--text)",
      "var(--text)",
    ]);
  });
});
