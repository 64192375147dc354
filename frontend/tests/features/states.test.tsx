// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CheckAnswer, Estimate } from "@/api/types";
import { NOTHING_HIDDEN } from "@/catalog/modes";
import { readSchema } from "@/catalog/schema";
import { EstimateTable, MemoryPanel } from "@/features/hardware/MemoryPanel";
import { FormContext, type FormSettings } from "@/features/inspector/form/FormContext";
import { MapField } from "@/features/inspector/form/MapField";
import { NodeInspector } from "@/features/inspector/NodeInspector";
import { CheckChip } from "@/features/problems/CheckChip";
import { LiveRun } from "@/live/LiveRun";
import { usePreferences } from "@/state/preferences";
import { smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aProblem } from "../fixtures/runs";

afterEach(cleanup);

const checked = (estimate: Estimate | null = null): CheckAnswer => ({
  report: { ok: true, diagnostics: [] },
  estimate,
  plan: null,
  mode: null,
});

describe("the memory of a GPU", () => {
  const estimate = (stages: string[]) =>
    ({
      gpus: [
        {
          pool: "main",
          index: 0,
          capacity_bytes: 4096,
          usable_bytes: 4096,
          peak_bytes: 2048,
          peak_stage: stages[0],
          fits: true,
          parts: stages.map((stage, at) => ({
            node: "a",
            part: "weights",
            bytes: 2048 >> at,
            stages: [stage],
          })),
        },
      ],
      stages: [],
      parameters: {},
      notes: [],
      advice: [],
      unknown: [],
      guessed: [],
    }) as unknown as Estimate;

  it("says the worst stage, and of another one only its name", () => {
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: checked(estimate(["a.learn", "a.generate"])) });
    render(<MemoryPanel />, { wrapper });
    expect(screen.getByText("worst in a.learn")).toBeTruthy();

    fireEvent.click(screen.getByRole("button", { name: "a.generate" }));

    expect(screen.getByText("in a.generate")).toBeTruthy();
  });

  it("goes back to the worst stage when the chosen one is gone", () => {
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: checked(estimate(["a.learn", "a.generate"])) });
    render(<MemoryPanel />, { wrapper });
    fireEvent.click(screen.getByRole("button", { name: "a.generate" }));

    act(() => syncStore.setState({ check: checked(estimate(["a.learn"])) }));

    expect(screen.getByText("worst in a.learn")).toBeTruthy();
    expect(screen.getByText("2.00 KiB")).toBeTruthy();
  });
});

describe("the check in the top bar", () => {
  it("says nothing of an older loop while the server is away", () => {
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({ check: checked(), checkStatus: "done" });
    render(<CheckChip />, { wrapper });
    expect(screen.getByRole("button").textContent).toContain("No problems");

    act(() => syncStore.setState({ checkStatus: "offline" }));

    expect(screen.getByRole("button").textContent).toBe("Not checked");
  });

  it("says nothing of the last good state while the text cannot be read", () => {
    const { wrapper, syncStore } = insideLoop();
    syncStore.setState({
      check: checked(),
      checkStatus: "done",
      brokenText: { text: "nodes: [", diagnostics: [] },
    });
    render(<CheckChip />, { wrapper });
    expect(screen.getByRole("button").textContent?.trim()).toBe("Text has errors");

    fireEvent.click(screen.getByRole("button"));

    expect(usePreferences.getState().dockTab).toBe("yaml");
  });
});

describe("values by name", () => {
  const field = readSchema({
    type: "object",
    title: "Weights",
    additionalProperties: { type: "number" },
  });
  let written: unknown[] = [];
  const form: FormSettings = {
    level: "simple",
    levels: ["simple"],
    base: [],
    scope: [],
    diagnostics: [aProblem({ field: "weights.exact", message: "too heavy" })],
    hidden: NOTHING_HIDDEN,
    keepsWrong: true,
    isLocked: () => false,
    lockReason: null,
    write: (path) => written.push(path.join(".")),
  };

  beforeEach(() => {
    written = [];
    if (field.shape !== "map") throw new Error("This schema is a map.");
    const { wrapper: Wrapper } = insideLoop();
    render(
      <Wrapper>
        <FormContext value={form}>
          <MapField field={field} path={["weights"]} value={{ exact: 9 }} isRequired={false} />
        </FormContext>
      </Wrapper>,
    );
  });

  it("what is wrong with one stands under it", () => {
    const entry = screen.getByRole("textbox", { name: "exact, Weights" }).closest("[data-field]");

    expect(entry?.textContent).toContain("too heavy");
  });

  it("a name that is in use is not added, and it is said", () => {
    const input = screen.getByPlaceholderText("new name");

    fireEvent.change(input, { target: { value: "exact" } });
    fireEvent.keyDown(input, { key: "Enter" });

    expect(screen.getByText("“exact” already exists.")).toBeTruthy();
    expect(written).toEqual([]);
  });
});

describe("a field that the catalog does not know", () => {
  it("is locked in a run", () => {
    const document = smallLoop();
    document.nodes.problems = { ...document.nodes.problems, kind: "dataset", rows_per_stpe: 3 };
    const { wrapper } = insideLoop({ document, live: new LiveRun("r") });

    render(<NodeInspector id="problems" />, { wrapper });

    expect(screen.getByLabelText("Rows per stpe")).toHaveProperty("disabled", true);
    expect(screen.getByRole("button", { name: "Remove Rows per stpe" })).toHaveProperty(
      "disabled",
      true,
    );
  });
});

it("a model that nobody knows has no bytes and no time", () => {
  const unknown = [
    { node: "actor", field: "model.path", found: "Qwen/Qwen9", reason: "is not known" },
  ];
  const stage = { stage: "actor.learn", node: "actor", seconds: null, tokens_per_second: null };
  const estimate = {
    ...{ gpus: [], stages: [stage], parameters: {}, notes: [], advice: [], guessed: [], unknown },
    ...{ step_seconds: null, bottleneck: null, rollout: {} },
  } as unknown as Estimate;
  const { wrapper } = insideLoop();

  const { container } = render(<EstimateTable estimate={estimate} />, { wrapper });

  expect(screen.getByText("Not known: actor, model.path: `Qwen/Qwen9` is not known")).toBeTruthy();
  expect(container.textContent).not.toMatch(/\b0 B|\d m?s\b/);
});
