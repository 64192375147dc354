// @vitest-environment jsdom
/** Cards: values that are read and changed in place, ports that unfold, learners in their colour. */
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { ReactFlow } from "@xyflow/react";
import { afterEach, describe, expect, it } from "vitest";
import type { Diagnostic } from "@/api/types";
import { EdgeOptions } from "@/features/canvas/LoopEdge";
import { CardHeader, CardValues, LearnBar } from "@/features/canvas/LoopNode";
import { CardProblems } from "@/features/canvas/NodeBadge";
import { PortFold } from "@/features/canvas/PortFold";
import { cardValues } from "@/graph/cardValues";
import { useSelection } from "@/state/selection";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

afterEach(cleanup);

function values(node: string) {
  const { store, wrapper } = insideLoop();
  render(<CardValues node={node} isReachable />, { wrapper });
  return store;
}

const completions = () => screen.getByRole("button", { name: /^completions of actor/ });

describe("values of a card", () => {
  it("are those that the kind calls telling, defaults too", () => {
    const said = cardValues(catalog, smallLoop(), "actor").map(({ label, text }) => [label, text]);

    expect(said.map(([label]) => label)).toEqual(["completions", "max tokens", "temperature"]);
    expect(said.every(([, text]) => text !== "")).toBe(true);
  });

  it("every kind has some, and no value of it stands twice", () => {
    for (const kind of Object.values(catalog.kinds)) {
      const loop = { ...smallLoop(), nodes: { one: { ...kind.template, kind: kind.kind } } };
      const said = cardValues(catalog, loop, "one");
      expect(said.length, kind.kind).toBeGreaterThan(0);
      expect(new Set(said.map(({ label }) => label)).size).toBe(said.length);
    }
  });

  it("say where a part of the node runs in another pool than the node", () => {
    const loop = smallLoop();
    const pools = (own: string) => {
      loop.nodes.actor = { kind: "actor", pool: own, rollout: { pool: "write" } };
      return cardValues(catalog, loop, "actor").filter(({ label }) => label.includes("pool"));
    };

    expect(pools("train")).toMatchObject([{ label: "rollout pool", text: "write" }]);
    expect(pools("write")).toEqual([]);
  });

  it("turn into a field, and are one undo entry when Enter keeps them", () => {
    const store = values("actor");

    fireEvent.click(completions());
    const field = screen.getByRole("textbox", { name: "completions of actor" });
    fireEvent.change(field, { target: { value: "1" } });
    fireEvent.change(field, { target: { value: "12" } });
    fireEvent.keyDown(field, { key: "Enter" });

    const { document, history } = store.getState();
    expect(document.nodes.actor).toMatchObject({ rollout: { completions_per_prompt: 12 } });
    expect(history.past.map(({ label }) => label)).toEqual(["Change completions of actor"]);
    expect(completions().textContent).toBe("12");
  });

  it("stay as they were after Escape, and while what is typed does not read", () => {
    const store = values("actor");
    const before = store.getState().document;

    fireEvent.click(completions());
    const field = screen.getByRole("textbox", { name: "completions of actor" });
    fireEvent.change(field, { target: { value: "2.5" } });
    fireEvent.keyDown(field, { key: "Enter" });
    expect(screen.getByRole("alert").textContent).toContain("whole number");
    fireEvent.keyDown(field, { key: "Escape" });

    expect(screen.queryByRole("textbox")).toBeNull();
    expect(store.getState().document).toBe(before);
  });

  it("of several lines lead to the form", () => {
    const loop = smallLoop();
    loop.nodes.ask = { kind: "template", text: "Sum:\n{{ prompt }}" };
    const { wrapper } = insideLoop({ document: loop });
    render(<CardValues node="ask" isReachable />, { wrapper });

    const text = screen.getByRole("button", { name: "text of ask: Sum:" });
    fireEvent.click(text);

    expect(screen.queryByRole("textbox")).toBeNull();
    expect(useSelection.getState().focus).toMatchObject({ node: "ask", field: "text" });
  });
});

it("the bar of a learner says how it learns, and leads there", () => {
  const loop = smallLoop();
  Object.assign(loop.nodes.actor ?? {}, { algorithm: { rewards: { name: "grpo" } } });
  const { wrapper } = insideLoop({ document: loop });
  render(<LearnBar node="actor" isReachable />, { wrapper });

  const bar = screen.getByRole("button", { name: /^actor learns: GRPO/ });
  fireEvent.click(bar);

  expect(useSelection.getState().focus).toMatchObject({ node: "actor", field: "algorithm" });
});

describe("choices of a card", () => {
  const learner = () => {
    const loop = smallLoop();
    const algorithm = { rewards: { name: "grpo", clip_low: 0.1 } };
    Object.assign(loop.nodes.actor ?? {}, { algorithm });
    return insideLoop({ document: loop });
  };
  const choose = async (name: RegExp, typed: string) => {
    fireEvent.click(screen.getByRole("button", { name }));
    fireEvent.change(await screen.findByPlaceholderText("Search"), { target: { value: typed } });
    fireEvent.click((await screen.findAllByRole("option"))[0] as HTMLElement);
  };

  it("the algorithm of a learner is searched and changed on its bar, as one undo entry", async () => {
    const { store, wrapper } = learner();
    render(<LearnBar node="actor" isReachable />, { wrapper });

    await choose(/^algorithm of actor: GRPO/, "rloo");

    const { document, history } = store.getState();
    expect(document.nodes.actor).toMatchObject({
      algorithm: { rewards: { name: "rloo", clip_low: 0.1 } },
    });
    expect(history.past.map(({ label }) => label)).toEqual(["Change algorithm of actor"]);
  });

  it("the model stands beside the kind and is changed there; a name that is not listed can be typed", async () => {
    const { store, wrapper } = learner();
    render(<CardHeader node="actor" isReachable />, { wrapper });

    await choose(/^model of actor: tiny-qwen3/, "my-own");

    const { document, history } = store.getState();
    expect(document.nodes.actor).toMatchObject({ model: { architecture: "my-own" } });
    expect(history.past.map(({ label }) => label)).toEqual(["Change model of actor"]);
  });

  it("a value that tells the shape of others apart takes along what both have", async () => {
    const loop = smallLoop();
    Object.assign(loop.nodes.problems ?? {}, {
      source: { type: "task", task: "arithmetic", split: "test" },
    });
    const { store, wrapper } = insideLoop({ document: loop });
    render(<CardValues node="problems" isReachable />, { wrapper });

    await choose(/^source of problems/, "sorting");

    expect(store.getState().document.nodes.problems).toMatchObject({
      source: { type: "task", task: "sorting", split: "test" },
    });
  });
});

it("all that a card lacks is one list at it, and mended there as one undo entry", () => {
  const { store, wrapper } = insideLoop();
  const problem = (severity: "error", message: string, value: number) => {
    const path = "nodes.actor.rollout.completions_per_prompt";
    const fixes = [{ title: `Write ${value}`, changes: [{ op: "set" as const, path, value }] }];
    return { code: "learning.group_of_one", severity, message, node: "actor", fixes } as Diagnostic;
  };
  const many = Array.from({ length: 5 }, (_, at) => problem("error", `Also ${at}.`, 10 + at));
  const problems = [problem("error", "Too few.", 9), ...many];
  render(<CardProblems problems={problems} tone="error" />, { wrapper });

  expect(screen.getAllByRole("listitem").length).toBe(5);
  expect(screen.getByText("Too few.")).toBeDefined();
  expect(screen.getByText("and 1 more")).toBeDefined();
  fireEvent.click(screen.getByRole("button", { name: "Write 9" }));

  const { document, history } = store.getState();
  expect(document.nodes.actor).toMatchObject({ rollout: { completions_per_prompt: 9 } });
  expect(history.past.map(({ label }) => label)).toEqual(["Write 9"]);
});

describe("the weight on an edge", () => {
  it("is changed where it is read, as one undo entry", () => {
    const loop = smallLoop();
    const edge = { from: "exact.scores", to: "actor.rewards", weight: 0.5 };
    loop.edges = [...loop.edges.filter(({ to }) => to !== edge.to), edge];
    const { store, wrapper } = insideLoop({ document: loop });
    const id = "exact.scores->actor.rewards";
    render(<EdgeOptions id={id} kind="learning" isSelected={false} />, { wrapper });

    fireEvent.click(
      screen.getByRole("button", { name: "weight of exact.scores->actor.rewards: × 0.5" }),
    );
    const field = screen.getByRole("textbox");
    fireEvent.change(field, { target: { value: "0.25" } });
    fireEvent.keyDown(field, { key: "Enter" });

    const { document, history } = store.getState();
    expect(document.edges.at(-1)).toMatchObject({ weight: 0.25 });
    expect(history.past.map(({ label }) => label)).toEqual(["Change weight of rewards"]);
  });

  it("that is not set is given where the edge is chosen, as one undo entry", () => {
    const loop = smallLoop();
    const edge = { from: "exact.scores", to: "actor.rewards" };
    loop.edges = [...loop.edges.filter(({ to }) => to !== edge.to), edge];
    const { store, wrapper } = insideLoop({ document: loop });
    const id = "exact.scores->actor.rewards";
    const label = { name: `weight of ${id}: × 1` };
    const { rerender } = render(<EdgeOptions id={id} kind="learning" isSelected={false} />, {
      wrapper,
    });
    expect(screen.queryByRole("button", label)).toBeNull();

    rerender(<EdgeOptions id={id} kind="learning" isSelected />);
    fireEvent.click(screen.getByRole("button", label));
    const field = screen.getByRole("textbox");
    fireEvent.keyDown(field, { key: "Enter" });
    expect(store.getState().document.edges.at(-1)).toEqual(edge);
    fireEvent.click(screen.getByRole("button", label));
    fireEvent.change(screen.getByRole("textbox"), { target: { value: "0.3" } });
    fireEvent.keyDown(screen.getByRole("textbox"), { key: "Enter" });

    const { document, history } = store.getState();
    expect(document.edges.at(-1)).toEqual({ ...edge, weight: 0.3 });
    expect(history.past.map((entry) => entry.label)).toEqual(["Change weight of rewards"]);
  });
});

const FREE = catalog.kinds.actor?.inputs.slice(1, 4) ?? [];
const FOLD = { node: "actor", side: "input", ports: FREE, top: 40, isReachable: true } as const;
const FoldCard = () => <PortFold {...FOLD} fitting={null} isDrawnFrom={false} />;
const BOX = { type: "card", position: { x: 0, y: 0 }, data: {}, width: 200, height: 90 };

it("the ports of a side open by their count, over the box, and close with Escape", () => {
  const { wrapper: Loop } = insideLoop();
  render(
    <Loop>
      <ReactFlow nodes={[{ ...BOX, id: "actor" }]} nodeTypes={{ card: FoldCard }} />
    </Loop>,
  );
  const count = screen.getByRole("button", { name: /^3 free inputs of actor: / });

  fireEvent.click(count);
  for (const { name } of FREE) expect(screen.getByLabelText(`input actor.${name}`)).toBeTruthy();

  fireEvent.keyDown(count, { key: "Escape" });
  expect(screen.queryByLabelText(`input actor.${FREE[0]?.name}`)).toBeNull();
});
