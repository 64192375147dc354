// @vitest-environment jsdom
/** While a loop is being drawn, what it still lacks is told as the next step, and nothing is hidden. */
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CheckAnswer, Diagnostic } from "@/api/types";
import { NodeBadge } from "@/features/canvas/NodeBadge";
import { CheckChip } from "@/features/problems/CheckChip";
import { ProblemsPanel } from "@/features/problems/ProblemsPanel";
import { useViewport } from "@/state/canvas";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aProblem } from "../fixtures/runs";

const reward = { kind: "reward", source: { type: "builtin", name: "exact_match" } };
const ADD = {
  title: "Add a reward",
  changes: [
    { op: "set" as const, path: "nodes.reward", value: reward },
    { op: "add_edge" as const, path: "edges", value: "actor.rollouts -> reward.rollouts" },
    { op: "add_edge" as const, path: "edges", value: "reward.scores -> actor.rewards" },
  ],
};
const CHECK = { mode: "online" } as CheckAnswer;
const step = (more: Partial<Diagnostic> = {}) =>
  aProblem({
    code: catalog.unfinished[0] ?? "",
    node: "actor",
    message: "nothing uses `actor` yet",
    ...more,
  });
const fault = (more: Partial<Diagnostic> = {}) =>
  aProblem({ code: "numbers.learning_rate", node: "actor", message: "far too large", ...more });

afterEach(cleanup);

function drawn(element: React.ReactNode, problems: Diagnostic[]) {
  const document = smallLoop();
  delete document.nodes.exact;
  document.edges = document.edges.filter(({ from, to }) => !`${from} ${to}`.includes("exact"));
  const inside = insideLoop({ document });
  const check = { ...CHECK, report: { ok: false, diagnostics: problems } };
  inside.syncStore.setState({ checkStatus: "done", check });
  render(element, { wrapper: inside.wrapper });
  return inside;
}

describe("the sign on a card", () => {
  it("is a next step where nothing is wrong with what was drawn, with the step that comes first", async () => {
    const loose = step({ message: "it has a `training`" });
    const { store } = drawn(<NodeBadge node="actor" />, [loose, step({ fixes: [ADD] })]);

    const sign = screen.getByRole("button", { name: "Next step of actor" });
    expect(sign.dataset.severity).toBe("next step");
    expect(sign.textContent).toBe("");
    fireEvent.pointerEnter(sign.parentElement as HTMLElement);
    expect(await screen.findAllByRole("listitem")).toHaveLength(2);
    fireEvent.click(screen.getByRole("button", { name: "Add a reward" }));

    const { document, history } = store.getState();
    expect(history.past.map(({ label }) => label)).toEqual(["Add a reward"]);
    expect(document.nodes.reward).toEqual(reward);
    expect(document.layout.reward?.[0]).toBeGreaterThan(document.layout.actor?.[0] ?? 0);
    expect(useViewport.getState().wish).toEqual({ node: "reward" });
  });

  it("counts what is wrong with what was drawn, and tells that first", async () => {
    const steps = Array.from({ length: 4 }, () => step());
    drawn(<NodeBadge node="actor" />, [...steps, fault({ severity: "warning" }), fault()]);

    const sign = screen.getByRole("button", { name: "2 problems of actor" });
    expect(sign.dataset.severity).toBe("error");
    fireEvent.pointerEnter(sign.parentElement as HTMLElement);

    expect(await screen.findAllByText("far too large")).toHaveLength(2);
    const listed = screen.getAllByRole("listitem");
    expect(listed).toHaveLength(5);
    expect(listed[0]?.textContent).toContain("far too large");
    expect(screen.getByText("and 1 more")).toBeDefined();
  });
});

describe("in a word", () => {
  it.each([
    ["Not finished", [step()]],
    ["1 error", [step(), fault()]],
    ["Not finished", [step(), fault({ severity: "warning" })]],
    ["1 warning", [step({ severity: "warning" }), fault({ severity: "warning" })]],
    ["1 next step", [step({ severity: "warning" })]],
    ["No problems", [fault({ severity: "hint" })]],
    ["No problems", []],
  ])("%s", (text, problems) => {
    drawn(<CheckChip />, problems);

    expect(screen.getByRole("button").textContent?.trim()).toBe(text);
  });
});

describe("the list", () => {
  beforeEach(() => {
    drawn(<ProblemsPanel />, [
      step({ message: "no goal" }),
      fault({ severity: "warning", message: "a warning" }),
      fault({ message: "an error" }),
      step({ message: "no prompts", fixes: [ADD] }),
    ]);
  });

  it("has everything: what is wrong by its weight, then the next steps", () => {
    const rows = screen.getAllByRole("listitem").map((row) => row.textContent ?? "");

    const order = ["an error", "a warning", "no prompts", "no goal"];
    expect(rows.map((row) => order.find((one) => row.includes(one)))).toEqual(order);
    const steps = within(screen.getByRole("region", { name: "Next steps" }));
    expect(steps.getAllByRole("listitem").length).toBe(2);
    expect(steps.queryByRole("img", { name: "error" })).toBeNull();
  });
});
