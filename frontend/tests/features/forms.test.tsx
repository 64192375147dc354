// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { ReactFlowProvider } from "@xyflow/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Diagnostic } from "@/api/types";
import { EdgeInspector, LoopInspector, PhaseInspector } from "@/features/inspector/Inspector";
import { NodeInspector } from "@/features/inspector/NodeInspector";
import { readPath } from "@/lib/paths";
import { listenToPresses } from "@/state/choosing";
import { OpenLoopProvider } from "@/state/document/context";
import { createDocumentStore } from "@/state/document/store";
import { setPreferences } from "@/state/preferences";
import { createSyncStore } from "@/state/sync/state";
import { choose } from "../fixtures/choose";
import { catalog, smallLoop } from "../fixtures/loops";
import { aProblem } from "../fixtures/runs";

const sandbox = {
  isolation: "namespaces",
  holds: "it sees no file",
  remains: "a core",
  reason: "",
};

const finding = (diagnostics: Diagnostic[]) => ({
  check: { report: { ok: false, diagnostics }, estimate: null, plan: null, mode: null },
});

function show(
  panel: React.ReactNode,
  diagnostics: Diagnostic[] = [],
  loop = smallLoop(),
  syncStore = createSyncStore("r1"),
) {
  const store = createDocumentStore({ document: loop, text: "" });
  syncStore.setState(finding(diagnostics));
  const client = new QueryClient();
  client.setQueryData(["sandbox"], sandbox);
  render(
    <QueryClientProvider client={client}>
      <OpenLoopProvider value={{ loopId: "l", runId: null, store, syncStore, sync: null, catalog }}>
        <ReactFlowProvider>{panel}</ReactFlowProvider>
      </OpenLoopProvider>
    </QueryClientProvider>,
  );
  return store;
}

function openGroups(...names: RegExp[]): void {
  for (const name of names) {
    const group = screen.getByRole("button", { name });
    if (group.getAttribute("aria-expanded") === "false") fireEvent.click(group);
  }
}

describe("forms from the catalog", () => {
  beforeEach(() => {
    setPreferences({ level: "simple" });
    // What is typed without a pause is one undo entry; nobody pauses here.
    vi.setSystemTime(Date.now());
  });
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
  });

  it.each(Object.values(catalog.kinds).map((kind) => [kind.kind, kind] as const))(
    "%s has a form with every field",
    (_, kind) => {
      const loop = smallLoop();
      loop.nodes.probe = { ...structuredClone(kind.template), kind: kind.kind };
      setPreferences({ level: catalog.levels.at(-1) ?? "" });
      show(<NodeInspector id="probe" />, [], loop);
      expect(screen.getByLabelText("Name of the node")).toHaveProperty("value", "probe");
    },
  );

  it("help of an algorithm that is the only one stands once", () => {
    setPreferences({ level: "expert" });
    const loop = smallLoop();
    loop.nodes.rm = {
      kind: "reward",
      source: { type: "model" },
      algorithm: { pairs: { name: "bradley_terry" } },
    };
    show(<NodeInspector id="rm" />, [], loop);
    for (const part of screen.getAllByRole("button", { expanded: false })) fireEvent.click(part);

    expect(screen.getAllByText(/chosen side higher than the rejected/).length).toBe(1);
  });

  it("a name in a mapping is changed in its place, and goes back where it is taken", () => {
    const loop = smallLoop();
    loop.nodes.judge = { kind: "verifier", method: "rule", read: { values: { yes: 1, no: 0 } } };
    const store = show(<NodeInspector id="judge" />, [], loop);
    openGroups(/^Reading/, /^Values/);
    const rename = (from: string, to: string) => {
      const name = screen.getByLabelText(`Name of ${from}, Values, Read`);
      fireEvent.change(name, { target: { value: to } });
      fireEvent.blur(name);
    };

    rename("no", "yes");
    rename("yes", "right");

    const values = readPath(store.getState().document.nodes.judge, ["read", "values"]);
    expect(Object.entries(values ?? {})).toEqual([
      ["right", 1],
      ["no", 0],
    ]);
  });

  it("a problem of a number in a union is told once", () => {
    const loop = smallLoop();
    loop.nodes.problems = {
      kind: "dataset",
      source: { type: "task", task: "arithmetic", digits: 0 },
    };
    const found = aProblem({ node: "problems", field: "source.digits", message: "found 0" });
    show(<NodeInspector id="problems" />, [found], loop);

    expect(screen.getAllByText("found 0")).toHaveLength(1);
  });

  it("scorers are chosen among the nodes that give scores", () => {
    const loop = smallLoop();
    const source = { type: "builtin", name: "agreement", columns: ["exact", ""] };
    loop.nodes.agrees = { kind: "reward", source };
    show(<NodeInspector id="agrees" />, [], loop);
    const list = screen.getByLabelText("Scorers, 2");
    fireEvent.focus(list);
    fireEvent.click(list);

    const offered = screen.getAllByRole("option").map((option) => option.textContent);
    expect(offered).toContain("exact");
    expect(offered).not.toContain("problems");
  });

  it("code says which isolation it runs with", async () => {
    const loop = smallLoop();
    loop.nodes.mine = { kind: "reward", source: { type: "python", code: "def reward(): ..." } };
    show(<NodeInspector id="mine" />, [], loop);

    const note = screen.getByRole("button", { name: "Sandboxed" });
    fireEvent.pointerMove(note);
    expect((await screen.findAllByText(/it sees no file/)).length).toBeGreaterThan(0);
  });

  it("what a check finds while a list is open, or while something is held, comes after it", async () => {
    const syncStore = createSyncStore("r1");
    const found = (message: string) =>
      act(() => syncStore.setState(finding([aProblem({ node: "problems", message })])));
    listenToPresses();
    show(<NodeInspector id="problems" />, [], smallLoop(), syncStore);

    fireEvent.keyDown(screen.getByLabelText("Task"), { key: "Enter" });
    found("nothing uses it");
    expect(screen.queryByText("nothing uses it")).toBeNull();
    fireEvent.keyDown(screen.getByRole("listbox"), { key: "Escape" });
    expect(await screen.findByText("nothing uses it")).toBeDefined();

    fireEvent.pointerDown(document.body);
    found("not used");
    expect(screen.queryByText("not used")).toBeNull();
    fireEvent.pointerUp(document.body);
    expect(await screen.findByText("not used")).toBeDefined();
  });

  it("what a check finds is on the page before a press can come between", async () => {
    const syncStore = createSyncStore("r1");
    show(<NodeInspector id="problems" />, [], smallLoop(), syncStore);
    const environment = globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean };
    environment.IS_REACT_ACT_ENVIRONMENT = false;
    try {
      syncStore.setState(finding([aProblem({ node: "problems", message: "nothing uses it" })]));
      // Microtasks only: the browser hands out presses between tasks.
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();

      expect(screen.getByText("nothing uses it")).toBeDefined();
    } finally {
      environment.IS_REACT_ACT_ENVIRONMENT = true;
    }
  });

  it("built-in rewards and tasks show as chosen, and are changed without loss", () => {
    const loop = smallLoop();
    loop.nodes.problems = {
      kind: "dataset",
      source: { type: "task", task: "arithmetic", digits: 3, split: "test" },
    };
    const store = show(<NodeInspector id="exact" />, [], loop);
    const exact = () => store.getState().document.nodes.exact?.source;
    expect(screen.getByLabelText("Source, type").textContent).toBe("builtin");
    expect(screen.getByLabelText("Reward name").textContent).toBe("exact match");
    const before = exact();

    choose(screen.getByLabelText("Reward name"), /^format/);
    expect(exact()).toMatchObject({ type: "builtin", name: "format" });
    choose(screen.getByLabelText("Source, type"), /^remote/);
    expect(exact()).toMatchObject({ type: "remote" });
    choose(screen.getByLabelText("Source, type"), /^builtin/);
    choose(screen.getByLabelText("Reward name"), /^exact match/);

    expect(exact()).toEqual(before);
    cleanup();
    show(<NodeInspector id="problems" />, [], loop);
    expect(screen.getByLabelText("Source, type").textContent).toBe("task");
    expect(screen.getByLabelText("Task").textContent).toBe("arithmetic");
    expect(screen.getByLabelText("Split").textContent).toBe("test");
  });

  it("Python begins with code that can run", () => {
    const store = show(<NodeInspector id="exact" />);

    choose(screen.getByLabelText("Source, type"), /^python/);

    expect(store.getState().document.nodes.exact?.source).toEqual({
      type: "python",
      code: expect.stringContaining("def reward(prompts, completions, **columns):"),
    });
  });

  it("code that may be left out offers an example", async () => {
    const loop = smallLoop();
    loop.nodes.ask = { kind: "template" };
    setPreferences({ level: "advanced" });
    const store = show(<NodeInspector id="ask" />, [], loop);

    fireEvent.click(screen.getByRole("button", { name: "Start with an example" }));

    expect(store.getState().document.nodes.ask?.code).toContain("def write(");
  });

  it("a number that is typed is set, an emptied one goes back to its default", () => {
    const store = show(<NodeInspector id="problems" />);
    const input = screen.getByLabelText("Rows per step");

    fireEvent.change(input, { target: { value: "64" } });
    expect(store.getState().document.nodes.problems?.rows_per_step).toBe(64);

    fireEvent.change(input, { target: { value: "" } });
    expect(store.getState().document.nodes.problems).not.toHaveProperty("rows_per_step");
  });

  it("an advanced field stays while it is retyped, and goes with the form", () => {
    const loop = smallLoop();
    loop.nodes.actor = {
      ...loop.nodes.actor,
      kind: "actor",
      training: { optimizer: { lr: 0.001, epsilon: 1e-6 } },
    };
    const store = show(<NodeInspector id="actor" />, [], loop);
    openGroups(/^Training/, /^Optimizer/);
    expect(screen.queryByLabelText("Epsilon")).toBeNull();
    expect(screen.getByText("1 changed value hidden at this level")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Show" }));
    const input = screen.getByLabelText("Epsilon");

    fireEvent.change(input, { target: { value: "" } });
    expect(screen.getByLabelText("Epsilon")).toBe(input);
    fireEvent.change(input, { target: { value: "1e-7" } });

    expect(store.getState().document.nodes.actor?.training).toEqual({
      optimizer: { lr: 0.001, epsilon: 1e-7 },
    });
    fireEvent.change(input, { target: { value: "" } });
    cleanup();
    show(<NodeInspector id="actor" />);
    openGroups(/^Training/, /^Optimizer/);
    expect(screen.queryByLabelText("Epsilon")).toBeNull();
  });

  it("a group that may be off stays on while its only field is retyped", () => {
    const loop = smallLoop();
    loop.nodes.actor = { ...loop.nodes.actor, kind: "actor" };
    loop.nodes.actor.model = { type: "pretrained", path: "x", lora: { rank: 8 } };
    const model = () => store.getState().document.nodes.actor?.model;
    const store = show(<NodeInspector id="actor" />, [], loop);
    openGroups(/^Model/);
    fireEvent.click(screen.getByRole("button", { name: "Show" }));
    openGroups(/^LoRA/);

    const input = screen.getByLabelText("Rank");
    fireEvent.change(input, { target: { value: "" } });
    expect(model()).toMatchObject({ lora: {} });
    fireEvent.change(screen.getByLabelText("Rank"), { target: { value: "16" } });

    expect(screen.getByLabelText("Rank")).toBe(input);
    expect(model()).toMatchObject({ lora: { rank: 16 } });
  });

  it("a phase stays while its only field is retyped", () => {
    const loop = smallLoop();
    loop.rest.schedule = { phases: [{ steps: 5 }] };
    const store = show(<PhaseInspector at={[0]} />, [], loop);

    fireEvent.change(screen.getByLabelText("Steps"), { target: { value: "" } });

    expect(store.getState().document.rest.schedule).toEqual({ phases: [{}] });
  });

  it("a number that is none is marked, counts until it is mended, and is seen again", () => {
    const store = show(<NodeInspector id="problems" />);
    const rows = () => store.getState().document.nodes.problems?.rows_per_step;
    const input = screen.getByLabelText("Rows per step");

    fireEvent.change(input, { target: { value: "3.5" } });
    expect(input.getAttribute("aria-invalid")).toBe("true");
    const problem = screen.getByText(/Expected a whole number/);
    expect(input.getAttribute("aria-describedby")).toBe(problem.id);
    expect(rows()).toBe(3.5);

    fireEvent.change(input, { target: { value: "abc" } });
    expect(rows()).toBe("abc");
    cleanup();
    show(<NodeInspector id="problems" />, [], store.getState().document);
    expect(screen.getByLabelText("Rows per step")).toHaveProperty("value", "abc");

    store.undo();
    expect(rows()).toBe(8);
  });

  it("what can become a number waits until the field is left, and what the check says is said once", () => {
    const found = aProblem({ node: "problems", field: "rows_per_step", message: "found “3e”" });
    const store = show(<NodeInspector id="problems" />, [found]);
    const rows = () => store.getState().document.nodes.problems?.rows_per_step;
    const input = screen.getByLabelText("Rows per step");

    fireEvent.change(input, { target: { value: "3e" } });
    expect(rows()).toBe(8);
    fireEvent.blur(input);

    expect(rows()).toBe("3e");
    expect(screen.getByText("found “3e”")).toBeTruthy();
    expect(screen.queryByText(/Expected a whole number/)).toBeNull();
  });

  it("typing in one field is one undo entry", () => {
    const store = show(<NodeInspector id="problems" />);
    const input = screen.getByLabelText("Rows per step");

    for (const value of ["1", "12", "128"]) fireEvent.change(input, { target: { value } });

    expect(store.getState().history.past).toHaveLength(1);
  });

  it("a problem stands under the field that it names, even above the chosen level", () => {
    show(<NodeInspector id="actor" />, [
      aProblem({ node: "actor", field: "training.optimizer.epsilon", message: "too large" }),
    ]);

    expect(screen.getByText("too large")).toBeTruthy();
  });

  it("a problem of a choice of shapes is said once", () => {
    const loop = smallLoop();
    loop.nodes.actor = { kind: "actor", algorithm: { name: "grpo" } };
    const problem = { node: "actor", field: "algorithm", message: "not connected" };
    show(<NodeInspector id="actor" />, [aProblem(problem)], loop);

    expect(screen.getByRole("group", { name: "one algorithm" })).toBeDefined();
    expect(screen.getAllByText("not connected")).toHaveLength(1);
  });

  it("a one-click fix changes the loop", () => {
    const store = show(<NodeInspector id="problems" />, [
      aProblem({
        node: "problems",
        field: "rows_per_step",
        fixes: [
          {
            title: "Set 16",
            changes: [{ op: "set", path: "nodes.problems.rows_per_step", value: 16 }],
          },
        ],
      }),
    ]);

    fireEvent.click(screen.getByRole("button", { name: "Set 16" }));

    expect(store.getState().document.nodes.problems?.rows_per_step).toBe(16);
    expect(store.getState().history.past.at(-1)?.label).toBe("Set 16");
  });

  it("a field that the catalog does not know is shown and can be removed", () => {
    const loop = smallLoop();
    loop.nodes.problems = { ...loop.nodes.problems, kind: "dataset", rows_per_stpe: 3 };
    const store = show(<NodeInspector id="problems" />, [], loop);

    fireEvent.click(screen.getByRole("button", { name: "Remove Rows per stpe" }));

    expect(store.getState().document.nodes.problems).not.toHaveProperty("rows_per_stpe");
  });

  it("a kind that the server does not know is kept and said", () => {
    const loop = smallLoop();
    loop.nodes.strange = { kind: "from_the_future", x: 1 };
    show(<NodeInspector id="strange" />, [], loop);

    expect(screen.getByText(/does not know the kind/)).toBeTruthy();
  });

  it("a node is renamed in place, and a bad name is refused with a reason", () => {
    const store = show(<NodeInspector id="actor" />);
    const input = screen.getByLabelText("Name of the node");

    fireEvent.change(input, { target: { value: "exact" } });
    expect(screen.getByText(/already in use/)).toBeTruthy();

    fireEvent.change(input, { target: { value: "policy" } });
    fireEvent.blur(input);
    expect(Object.keys(store.getState().document.nodes)).toContain("policy");
  });

  it("an edge's options are set", () => {
    const store = show(<EdgeInspector edgeKey="exact.scores->actor.rewards" />);

    fireEvent.change(screen.getByLabelText("Weight"), { target: { value: "2" } });

    expect(store.getState().document.edges[3]?.weight).toBe(2);
  });

  it("a phase learns from the ports that are chosen", () => {
    const store = show(<PhaseInspector at={[1, 0]} />);

    fireEvent.click(screen.getByRole("checkbox", { name: "actor.rewards" }));

    expect(store.getState().document.rest.schedule).toMatchObject({
      phases: [{ name: "warm-up" }, { phases: [{ name: "rl", learn: [] }] }],
    });
  });

  it("a metric is searched among those that the loop reports, or typed", () => {
    setPreferences({ level: catalog.levels.at(-1) ?? "" });
    const loop = smallLoop();
    loop.nodes.probe = { kind: "evaluate", metrics: ["accuracy", "score"] };
    const store = show(<LoopInspector />, [], loop);
    openGroups(/Checkpoint/);
    const best = screen.getByRole("combobox", { name: "Best" });

    choose(best, "probe.score");
    expect(store.getState().document.rest.run).toMatchObject({ best: "probe.score" });

    fireEvent.click(best);
    const line = screen.getByPlaceholderText("Search, or type another");
    fireEvent.change(line, { target: { value: "actor.kl" } });
    fireEvent.click(screen.getByRole("option", { name: "Use “actor.kl”" }));
    expect(store.getState().document.rest.run).toMatchObject({ best: "actor.kl" });
  });

  it("what a probe measures is chosen as chips, each once", () => {
    const loop = smallLoop();
    loop.nodes.probe = { kind: "evaluate", metrics: ["accuracy"] };
    const store = show(<NodeInspector id="probe" />, [], loop);
    const more = screen.getByRole("combobox", { name: "Add to Metrics" });

    fireEvent.click(more);
    expect(screen.queryByRole("option", { name: "accuracy" })).toBeNull();
    fireEvent.click(screen.getByRole("option", { name: "score" }));

    expect(store.getState().document.nodes.probe?.metrics).toEqual(["accuracy", "score"]);
  });

  it("the loop has its hardware and run settings", () => {
    const store = show(<LoopInspector />);

    fireEvent.change(screen.getByLabelText("Seed"), { target: { value: "7" } });

    expect(store.getState().document.rest.run).toMatchObject({ seed: 7 });
  });
});
