// @vitest-environment jsdom
/** Several nodes of one kind, changed together. */
import { act, cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { ManyInspector } from "@/features/inspector/ManyInspector";
import { clearSelection, select } from "@/state/selection";
import { smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

afterEach(() => {
  cleanup();
  clearSelection();
});

function choose(nodes: string[]) {
  const document = smallLoop();
  document.nodes.held_out = {
    kind: "dataset",
    source: { type: "task", task: "arithmetic" },
    rows_per_step: 32,
  };
  document.layout.held_out = [16, 300];
  const open = insideLoop({ document });
  act(() => select({ nodes }));
  render(<ManyInspector />, { wrapper: open.wrapper });
  return open.store;
}

it("shows what is equal, says what differs, and sets a value in all of them as one step", () => {
  const store = choose(["problems", "held_out"]);
  const row = screen.getByLabelText("Rows per step").closest("[data-field]")?.parentElement;
  expect(within(row as HTMLElement).getByText("Differs: 8, 32")).toBeTruthy();
  expect(screen.getByLabelText("Task").textContent).toContain("arithmetic");
  expect(screen.getAllByText(/^Differs/)).toHaveLength(1);

  const field = screen.getByLabelText("Rows per step");
  fireEvent.change(field, { target: { value: "64" } });
  fireEvent.blur(field);

  const { nodes } = store.getState().document;
  expect([nodes.problems?.rows_per_step, nodes.held_out?.rows_per_step]).toEqual([64, 64]);
  expect(store.getState().history.past.map(({ label }) => label)).toEqual(["Change 2 nodes"]);
  expect(screen.queryByText(/^Differs/)).toBeNull();
});

it("nodes of several kinds have no fields together, and can be put in line", () => {
  const store = choose(["problems", "held_out", "actor"]);

  expect(screen.getByText(/Select nodes of one kind/)).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Align left sides" }));

  const { layout } = store.getState().document;
  expect([layout.problems?.[0], layout.held_out?.[0], layout.actor?.[0]]).toEqual([0, 0, 0]);
});
