// @vitest-environment jsdom
/** Frames on the canvas: their menu, and what the keyboard does with pools. */

import { act, cleanup, fireEvent, render, renderHook, screen } from "@testing-library/react";
import { ReactFlow } from "@xyflow/react";
import { afterEach, expect, it, vi } from "vitest";
import { useLayoutActions } from "@/app/actions/useEditorActions";
import { Frames } from "@/features/canvas/frames/Frames";
import { clearSelection, select, useSelection } from "@/state/selection";
import { smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

afterEach(() => {
  cleanup();
  clearSelection();
});

function pooled() {
  const document = smallLoop();
  document.rest.hardware = { preset: "cpu", pools: { train: { workers: 2 }, write: {} } };
  document.nodes.actor = { ...document.nodes.actor, kind: "actor", pool: "train" };
  return insideLoop({ document });
}

it("a pool is a region with its size; its menu selects its nodes and places what is selected", async () => {
  const { wrapper, store } = pooled();
  const nodes = [
    { id: "actor", position: { x: 320, y: 0 }, width: 200, height: 100, data: {} },
    { id: "start", position: { x: 0, y: 300 }, width: 200, height: 100, data: {} },
  ];
  render(
    <ReactFlow nodes={nodes}>
      <Frames nodes={nodes} />
    </ReactFlow>,
    { wrapper },
  );
  const frame = await screen.findByRole("region", { name: "Pool train, 2 workers" });
  const open = () =>
    fireEvent.keyDown(frame.querySelector("button") as HTMLElement, { key: "Enter" });

  open();
  fireEvent.click(await screen.findByRole("menuitem", { name: "Select its nodes" }));
  expect(useSelection.getState().nodes).toEqual(["actor"]);

  // The menu hands the focus back when it is closed.
  await vi.waitFor(() => expect(document.activeElement).toBe(frame.querySelector("button")));
  act(() => select({ nodes: ["start"] }));
  open();
  fireEvent.click(await screen.findByRole("menuitem", { name: "Place the selection here" }));
  expect(store.getState().document.nodes.start?.pool).toBe("train");
  expect(store.getState().history.past.at(-1)?.label).toBe("Place start in pool train");
});

it("a key places the selection in one pool after the other, and then in none, as one step", () => {
  const { wrapper, store } = pooled();
  const { result } = renderHook(() => useLayoutActions(), { wrapper });
  const next = result.current.find(({ id }) => id === "nextPool");
  expect(next?.isEnabled?.()).toBe(false);
  act(() => select({ nodes: ["start"] }));
  expect(next?.isEnabled?.()).toBe(true);

  const seen = [0, 1, 2].map(() => {
    act(() => next?.run());
    return store.getState().document.nodes.start?.pool ?? null;
  });

  expect(seen).toEqual(["train", "write", null]);
  expect(store.getState().history.past).toHaveLength(1);
  expect(result.current.map(({ label }) => label)).toContain("Place in pool write");
});

it("a command tidies the graph pool by pool, as one step; without pools there is nothing to tidy", async () => {
  const { wrapper, store } = pooled();
  const { result } = renderHook(() => useLayoutActions(), { wrapper });
  const tidy = result.current.find(({ id }) => id === "arrangePools");
  expect(tidy?.isEnabled?.()).toBe(true);

  act(() => tidy?.run());
  await vi.waitFor(() =>
    expect(store.getState().history.past.map(({ label }) => label)).toEqual(["Tidy by pools"]),
  );

  const { layout, nodes } = store.getState().document;
  expect(Object.keys(layout).toSorted()).toEqual(Object.keys(nodes).toSorted());
  const plain = insideLoop({ document: { ...smallLoop() } });
  const bare = renderHook(() => useLayoutActions(), { wrapper: plain.wrapper });
  expect(bare.result.current.find(({ id }) => id === "arrangePools")?.isEnabled?.()).toBe(false);
});
