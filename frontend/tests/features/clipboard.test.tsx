// @vitest-environment jsdom
/** What is copied and pasted, with the service's answers in its place. */
import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import { useSelection } from "@/state/selection";
import { useClipboard } from "@/state/useClipboard";
import { insideLoop } from "../fixtures/open";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const PIECE = {
  nodes: { problems: { kind: "dataset" }, judge: { kind: "reward" } },
  edges: ["problems.rows -> judge.rows", "problems.rows -> elsewhere.rows"],
  layout: {},
  diagnostics: [],
};

it("a text with nodes becomes nodes under free names, with the edges among them, in one step", async () => {
  const { wrapper, store } = insideLoop();
  vi.spyOn(routes, "readFragment").mockResolvedValue(PIECE);
  const before = store.getState().document;
  const { result } = renderHook(() => useClipboard(), { wrapper });

  await act(() => result.current.paste("problems: {kind: dataset}"));

  const { document, history } = store.getState();
  expect(Object.keys(document.nodes).slice(-2)).toEqual(["problems_2", "judge"]);
  expect(document.edges.slice(before.edges.length)).toEqual([
    { from: "problems_2.rows", to: "judge.rows" },
  ]);
  expect(useSelection.getState().nodes).toEqual(["problems_2", "judge"]);
  expect(history.past.map(({ label }) => label)).toEqual(["Paste"]);
  store.undo();
  expect(store.getState().document).toEqual(before);
});

it("pasting twice puts no copy on another", async () => {
  const { wrapper, store } = insideLoop();
  vi.spyOn(routes, "readFragment").mockResolvedValue(PIECE);
  const { result } = renderHook(() => useClipboard(), { wrapper });

  await act(() => result.current.paste("a: b"));
  await act(() => result.current.paste("a: b"));
  act(() => result.current.duplicate(["problems"]));

  const places = Object.values(store.getState().document.layout).map(String);
  expect(places).toHaveLength(7);
  expect(new Set(places).size).toBe(7);
});

it("a text without nodes changes nothing", async () => {
  const { wrapper, store } = insideLoop();
  vi.spyOn(routes, "readFragment").mockResolvedValue({ ...PIECE, nodes: {}, edges: [] });
  const before = store.getState().document;
  const { result } = renderHook(() => useClipboard(), { wrapper });

  await act(() => result.current.paste("see: nothing"));

  expect(store.getState().document).toBe(before);
});

it("copies what the service writes, and cuts only what was copied", async () => {
  const { wrapper, store } = insideLoop();
  const written: string[] = [];
  vi.stubGlobal("navigator", {
    clipboard: { writeText: async (text: string) => void written.push(text) },
  });
  const dump = vi.spyOn(routes, "dumpSpec").mockResolvedValue({ yaml: "nodes: {}\n" });
  const { result } = renderHook(() => useClipboard(), { wrapper });

  await act(() => result.current.cut(["actor", "start"]));

  expect(dump.mock.calls[0]?.[0]).toMatchObject({
    nodes: { actor: { kind: "actor" }, start: { kind: "reference" } },
    edges: ["actor.rollouts -> start.rollouts"],
    layout: { actor: [320, 0] },
  });
  expect(written).toEqual(["nodes: {}\n"]);
  expect(Object.keys(store.getState().document.nodes)).toEqual(["problems", "exact"]);

  dump.mockRejectedValue(new Error("away"));
  await act(() => result.current.cut(["problems"]));
  expect(Object.keys(store.getState().document.nodes)).toEqual(["problems", "exact"]);
});
