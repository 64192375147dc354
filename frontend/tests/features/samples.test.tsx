// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { SampleRow } from "@/api/types";
import { undecidedOf } from "@/features/samples/groups";
import { MIN_SHOWN, SamplesPanel, StepChoice } from "@/features/samples/SamplesPanel";
import { LiveRun } from "@/live/LiveRun";
import { usePreferences } from "@/state/preferences";
import { choose } from "../fixtures/choose";
import { smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const STEPS = [1, 2, 3];

const fetchSamples = vi.fn<typeof routes.fetchSamples>(async (_, step) => ({
  steps: STEPS,
  rows: [
    {
      seq: (step ?? 0) * 10,
      step,
      node: "a",
      prompt: `low of ${step}`,
      reward: 0,
      scores: {},
      has_tokens: false,
    },
    {
      seq: (step ?? 0) * 10,
      step,
      node: "a",
      prompt: `high of ${step}`,
      reward: 1,
      scores: {},
      has_tokens: false,
    },
  ],
}));

function sample(live: LiveRun, step: number) {
  live.applyEvents([
    {
      seq: live.state.lastSeq + 1,
      at: "2026-01-01T00:00:00Z",
      run: "r",
      attempt: 1,
      type: "sample",
      step,
      rows: [{ prompt: "p" }],
    },
  ]);
}

async function showWithRun() {
  const live = new LiveRun("r");
  const { wrapper: Wrapper } = insideLoop({ live });
  const come = async (step: number) => {
    act(() => sample(live, step));
    await act(() => vi.advanceTimersByTimeAsync(MIN_SHOWN));
  };
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Wrapper>
        <SamplesPanel />
      </Wrapper>
    </QueryClientProvider>,
  );
  await come(STEPS[0] ?? 0);
  return { live, come };
}

async function show() {
  return (await showWithRun()).come;
}

beforeEach(() => {
  usePreferences.setState({ samplesView: "table" });
  vi.useFakeTimers();
  vi.spyOn(routes, "fetchSamples").mockImplementation(fetchSamples);
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("samples of the newest step", () => {
  it("says beside the texts what the author says of where the rows come from", async () => {
    const live = new LiveRun("r");
    const document = smallLoop();
    const source = Object.values(document.nodes).find(({ kind }) => kind === "dataset");
    Object.assign(source ?? {}, { note: "Answers begin with the last digit." });
    const { wrapper: Wrapper } = insideLoop({ live, document });
    render(
      <QueryClientProvider client={new QueryClient()}>
        <Wrapper>
          <SamplesPanel />
        </Wrapper>
      </QueryClientProvider>,
    );
    act(() => sample(live, 1));
    await act(() => vi.advanceTimersByTimeAsync(MIN_SHOWN));

    expect(screen.getByText("Answers begin with the last digit.")).toBeTruthy();
  });

  it("follow the run while none is open", async () => {
    const come = await show();
    expect(screen.getByText("low of 1")).toBeTruthy();

    await come(2);

    expect(screen.getByText("low of 2")).toBeTruthy();
  });

  it("stay while one of them is read, and follow again afterwards", async () => {
    const come = await show();
    fireEvent.click(screen.getByRole("button", { name: "Sample 2" }));

    await come(2);
    expect(screen.getAllByText("high of 1")).toHaveLength(2);
    expect(screen.getByText("step 1 is shown while its sample is open")).toBeTruthy();
    expect(screen.getByRole("button", { name: "newest (2)" })).toBeTruthy();

    fireEvent.click(screen.getByRole("button", { name: "Sample 2" }));
    await act(() => vi.advanceTimersByTimeAsync(MIN_SHOWN));
    expect(screen.getByText("low of 2")).toBeTruthy();
  });

  it("each step is asked for once, and not again at every new event", async () => {
    const come = await show();
    fireEvent.keyDown(screen.getByLabelText("Step"), { key: "Enter" });
    const asked = () => fetchSamples.mock.calls.length;
    const before = asked();

    for (const step of [2, 3, 4, 5]) await come(step);

    expect(asked()).toBe(before);
    expect(screen.getByRole("button", { name: "newest (5)" })).toBeTruthy();
  });

  it("steps that come faster than one can read are passed over", async () => {
    const { live } = await showWithRun();
    fetchSamples.mockClear();

    for (let step = 2; step < 40; step += 1) {
      act(() => sample(live, step));
      await act(() => vi.advanceTimersByTimeAsync(MIN_SHOWN / 10));
    }

    expect(fetchSamples.mock.calls.length).toBeLessThanOrEqual(5);
  });

  it("another order keeps the open one open", async () => {
    await show();
    fireEvent.click(screen.getByRole("button", { name: "Sample 2" }));

    choose(screen.getByLabelText("Order"), "best reward first");

    const first = screen.getByRole("button", { name: "Sample 1" });
    expect(first.getAttribute("aria-expanded")).toBe("true");
  });
});

describe("of which step the texts are", () => {
  function choice(chosen: number | null, shown = chosen) {
    const onChoose = vi.fn();
    const steps = [3, 10, 40];
    render(
      <StepChoice steps={steps} newest={40} shown={shown} chosen={chosen} onChoose={onChoose} />,
    );
    return onChoose;
  }

  it("goes step by step through those that have some, and back to the newest", () => {
    const onChoose = choice(10);

    fireEvent.click(screen.getByRole("button", { name: "Earlier step" }));
    fireEvent.click(screen.getByRole("button", { name: "Later step" }));
    fireEvent.click(screen.getByRole("button", { name: "newest (40)" }));

    expect(onChoose.mock.calls).toEqual([[3], [40], [null]]);
  });

  it("is the one on screen, also where a newer one is followed", () => {
    choice(null, 10);

    expect(screen.getByLabelText<HTMLInputElement>("Step").value).toBe("10");
  });

  it("is typed as a number, and is the last one before it that has some", () => {
    const onChoose = choice(null);
    const field = screen.getByLabelText("Step");

    fireEvent.change(field, { target: { value: "39" } });
    fireEvent.keyDown(field, { key: "Enter" });
    fireEvent.change(field, { target: { value: "abc" } });
    fireEvent.blur(field);

    expect(onChoose.mock.calls).toEqual([[10]]);
    expect(field).toHaveProperty("value", "40");
  });
});

it("a judge whose words hold no verdict is named at the text that it read", () => {
  const row = (id: string, node: string, change = {}) =>
    ({ id, node, seq: 1, step: 1, scores: {}, has_tokens: false, ...change }) as SampleRow;
  const text = row("t", "writer", { scores: { exact: 1, second: null } });
  const rows = [
    text,
    row("c1", "first", { parents: ["t"] }),
    row("c2", "second", { parents: ["t"] }),
    row("c3", "reader", { parents: ["t"] }),
  ];
  const isJudge = (node: string) => node !== "reader";

  expect(undecidedOf(text, rows, isJudge)).toEqual(["first", "second"]);
  const read = { ...text, scores: { first: 0, "second.step_scores": 0.5 } };
  expect(undecidedOf(read, rows, isJudge)).toEqual([]);
});
