// @vitest-environment jsdom

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Json, JsonObject } from "@/api/types";
import { HardwareBar } from "@/features/hardware/HardwareBar";
import { NodeInspector } from "@/features/inspector/NodeInspector";
import { setPreferences } from "@/state/preferences";
import { nextState, startState } from "@/state/sync/state";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aProblem } from "../fixtures/runs";

function show(node: JsonObject) {
  const document = smallLoop();
  document.nodes.mine = node as (typeof document.nodes)[string];
  const { store, syncStore, wrapper: Wrapper } = insideLoop({ document });
  const client = new QueryClient();
  client.setQueryData(["sandbox"], { isolation: "none", holds: "", remains: "", reason: "" });
  render(
    <QueryClientProvider client={client}>
      <Wrapper>
        <NodeInspector id="mine" />
      </Wrapper>
    </QueryClientProvider>,
  );
  for (const part of screen.queryAllByRole("button", { expanded: false }))
    if (part.getAttribute("aria-haspopup") === null) fireEvent.click(part);
  return { node: () => store.getState().document.nodes.mine as JsonObject, syncStore };
}

const FILE = { kind: "dataset", source: { type: "file", path: "rows.jsonl" } };

function addNamed(group: string, name: string): void {
  const box = screen.getByLabelText(`New name in ${group}`);
  fireEvent.change(box, { target: { value: name } });
  fireEvent.keyDown(box, { key: "Enter" });
}

/** Texts without a letter, wherever they stand. */
function emptyTexts(value: Json | undefined): number {
  if (value === "") return 1;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>((sum, part) => sum + emptyTexts(part), 0);
}

describe("what is not finished yet is not in the loop", () => {
  beforeEach(() => setPreferences({ level: catalog.levels.at(-1) ?? "" }));
  afterEach(cleanup);

  it("a column that was just added waits for its first letter, and keeps the keys", () => {
    const { node } = show(FILE);
    addNamed("Columns", "prompt");
    const field = screen.getByLabelText(/prompt/, { selector: "input" });

    expect(document.activeElement).toBe(field);
    expect(node().columns).toBeUndefined();
    fireEvent.change(field, { target: { value: "q" } });
    expect(node().columns).toEqual({ prompt: "q" });
    expect(document.activeElement).toBe(field);
  });

  it("a column that is left empty is in the loop, so that the check names it", () => {
    const { node } = show(FILE);
    addNamed("Columns", "prompt");
    act(() => (document.activeElement as HTMLElement).blur());

    expect(node().columns).toEqual({ prompt: "" });
  });

  it("one that is taken away before it was filled leaves nothing", () => {
    const { node } = show(FILE);
    addNamed("Columns", "prompt");
    fireEvent.click(screen.getByLabelText(/^Remove .*prompt/));

    expect(node().columns).toBeUndefined();
    expect(screen.queryByLabelText(/^Remove .*prompt/)).toBeNull();
  });

  it("a field that is emptied to be written anew keeps its value until it is left", () => {
    const { node } = show(FILE);
    const path = () => (node().source as JsonObject).path;
    const field = screen.getByLabelText("Path");
    act(() => field.focus());
    fireEvent.change(field, { target: { value: "" } });
    expect(field).toHaveProperty("value", "");
    expect(path()).toBe("rows.jsonl");

    fireEvent.change(field, { target: { value: "o" } });
    expect(path()).toBe("o");
    fireEvent.change(field, { target: { value: "" } });
    act(() => field.blur());
    expect(path()).toBeUndefined();
  });

  it("a map entry that is emptied stays, is blamed only when it is left, and can be filled again", async () => {
    const { node, syncStore } = show({ ...FILE, columns: { prompt: "q" } });
    const field = screen.getByLabelText(/^prompt/, { selector: "input" });
    act(() => field.focus());
    fireEvent.change(field, { target: { value: "" } });
    expect(node().columns).toEqual({ prompt: "q" });
    act(() => field.blur());
    expect(node().columns).toEqual({ prompt: "" });

    const problem = aProblem({
      node: "mine",
      field: "columns.prompt",
      message: "found an empty text",
    });
    act(() =>
      syncStore.setState({
        check: {
          report: { ok: false, diagnostics: [problem] },
          estimate: null,
          plan: null,
          mode: null,
        },
      }),
    );
    expect(await screen.findByText("found an empty text")).toBeTruthy();
    act(() => screen.getByLabelText(/^prompt/, { selector: "input" }).focus());
    expect(screen.queryByText("found an empty text")).toBeNull();
  });

  it("of a pair of columns the first is no error while the second is not typed", () => {
    const { node } = show({ kind: "reward", source: { type: "agreement", columns: ["a", "b"] } });
    const pairs = screen.queryAllByLabelText(/, [12]$/, { selector: "input" });
    for (const [index, field] of pairs.entries()) {
      act(() => field.focus());
      fireEvent.change(field, { target: { value: "" } });
      fireEvent.change(field, { target: { value: `c${index}` } });
      expect(emptyTexts(node())).toBe(0);
    }
  });

  it.each(Object.keys(catalog.kinds))(
    "nothing that is added to %s puts an empty text into it",
    (kind) => {
      const template = catalog.kinds[kind]?.template as JsonObject;
      let { node } = show({ ...structuredClone(template), kind });
      const before = emptyTexts(node());
      const adders = () => [
        ...document.querySelectorAll<HTMLElement>(
          "input[aria-label^='New name in '], button[aria-label^='Add to ']:not([role=combobox])",
        ),
      ];
      for (let place = 0; place < adders().length; place += 1) {
        const adder = adders()[place] as HTMLElement;
        const label = adder.getAttribute("aria-label");
        if (adder.tagName === "INPUT") {
          fireEvent.change(adder, { target: { value: "fresh" } });
          fireEvent.keyDown(adder, { key: "Enter" });
        } else fireEvent.click(adder);
        expect([label, emptyTexts(node())]).toEqual([label, before]);
        cleanup();
        ({ node } = show({ ...structuredClone(template), kind }));
      }
    },
  );
});

it("memory and time stay as of the last valid state while the loop has an error", () => {
  const gpu = {
    index: 0,
    pool: "main",
    capacity_bytes: 2e9,
    usable_bytes: 2e9,
    peak_bytes: 1e9,
    fits: true,
    parts: [],
  };
  const good = {
    report: { ok: true, diagnostics: [] },
    estimate: { gpus: [gpu], stages: [], roles: [] },
    plan: null,
    time: null,
    mode: null,
    budget: 1,
  };
  const bad = {
    report: { ok: false, diagnostics: [aProblem({})] },
    estimate: null,
    plan: null,
    time: null,
    mode: null,
  };
  const checked = (state: ReturnType<typeof startState>, check: unknown) =>
    nextState(state, { type: "checked", check: check as never, text: "x" });
  const { syncStore, wrapper: Wrapper } = insideLoop();
  syncStore.setState(checked(startState("r1"), good));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Wrapper>
        <HardwareBar />
      </Wrapper>
    </QueryClientProvider>,
  );
  expect(screen.queryByText("last valid state")).toBeNull();
  act(() => syncStore.setState(checked(syncStore.getState(), bad)));
  expect(screen.getByText("last valid state")).toBeTruthy();
  expect(screen.queryByText(/estimated once the loop is valid/)).toBeNull();

  act(() => syncStore.setState(checked(syncStore.getState(), { ...good, estimate: null })));
  expect(screen.queryByText("last valid state")).toBeNull();
  cleanup();
});
