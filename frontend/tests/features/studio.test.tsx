// @vitest-environment jsdom
/** The reward studio: weights as one undoable step, totals as the engine counts them, sources that are added. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ScoredRows } from "@/api/types";
import { codeOf, scorerChoices } from "@/catalog/scorers";
import { payees, payingEdges, totalOf, weighed } from "@/document/rewards";
import type { LoopDocument } from "@/document/types";
import { readPasted } from "@/features/studio/RowsChoice";
import { newSource, Studio, unconnected } from "@/features/studio/Studio";
import { sorted, tableRows } from "@/features/studio/table";
import { correlation, histogram } from "@/lib/statistics";
import { setWeights } from "@/state/commands/edges";
import { setField } from "@/state/commands/fields";
import { type OpenLoop, OpenLoopProvider, useOpenLoop } from "@/state/document/context";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const routes = vi.hoisted(() => ({
  fetchPreviewLimits: vi.fn(async () => ({ seconds: { of_dataset: 42 } })),
  fetchRuns: vi.fn(async () => ({ items: [], total: 0 })),
  preparePreviews: vi.fn(async () => undefined),
  previewRows: vi.fn(async () => ({ total: 0, columns: [], rows: [], unread: [] })),
  previewScores: vi.fn(),
}));
vi.mock("@/api/routes", async (original) => ({ ...(await original<object>()), ...routes }));

afterEach(cleanup);
beforeEach(() => {
  routes.previewScores.mockReset();
});

function twoSources(): LoopDocument {
  const loop = smallLoop();
  return {
    ...loop,
    nodes: {
      ...loop.nodes,
      mine: { kind: "reward", source: { type: "python", code: "def reward(prompts): pass\n" } },
    },
    edges: [
      ...loop.edges,
      { from: "actor.rollouts", to: "mine.rollouts" },
      { from: "mine.scores", to: "actor.rewards", weight: 0.3 },
    ],
  };
}

const edgesOf = (document: LoopDocument) => payingEdges(document, "actor.rewards");

function found(change: Partial<ScoredRows> = {}): ScoredRows {
  const source = { weight: 1, error: null, line: null, printed: "", seconds: 0.1 };
  const row = (id: string) => ({ id, prompt: "1+1=", completion: id, target: "2", columns: {} });
  return {
    rows: [row("a"), row("b"), row("c")],
    sources: [
      { ...source, edge: "outcome", node: "exact", scores: [1, 0, 1], failures: [] },
      {
        ...source,
        edge: "mine.scores->actor.rewards",
        node: "mine",
        scores: [0.5, null, 0],
        failures: [
          { row: 1, message: "mine, row 1: ZeroDivisionError: division by zero", line: 4 },
        ],
      },
    ],
    totals: [0.65, 0, 0.5],
    combine: "sum_then_normalize",
    missing: "sum_of_available",
    note: null,
    seconds: 0.2,
    ...change,
  };
}

it("knows whom scores of own texts pay, and by which edges", () => {
  const loop = twoSources();

  expect(payees(catalog, loop).map(({ name }) => name)).toEqual(["actor.rewards"]);
  expect(edgesOf(loop).map(({ name, node, weight }) => [name, node, weight])).toEqual([
    ["outcome", "exact", 0.5],
    ["mine.scores->actor.rewards", "mine", 0.3],
  ]);
});

it("lets the others share what is left where the total is kept, but for those that are locked", () => {
  const edge = (key: string, weight: number) => ({ key, name: key, node: key, weight });
  const edges = [edge("a", 0.5), edge("b", 0.3), edge("c", 0.2)];

  expect(weighed(edges, "a", 0.7, null)).toEqual({ a: 0.7 });
  const shared = weighed(edges, "a", 0.75, { total: 1, locked: new Set() });
  expect(shared).toEqual({ a: 0.75, b: 0.15, c: 0.1 });
  expect(weighed(edges, "a", 0.6, { total: 1, locked: new Set(["b"]) })).toEqual({
    a: 0.6,
    c: 0.1,
  });
  expect(weighed(edges, "a", 0.9, { total: 1, locked: new Set(["b", "c"]) })).toEqual({ a: 0.5 });
});

it("counts a total as the learner's credit says", () => {
  expect(totalOf([1, 0.5], [0.5, -2], "sum_of_available")).toBe(-0.5);
  expect(totalOf([1, null], [0.5, 0.5], "mean_of_available")).toBe(1);
  expect(totalOf([1, null], [0.5, 0.5], "skip_row")).toBeNull();
  expect(totalOf([1, null], [0.5, 0], "skip_row")).toBe(0.5);
  expect(totalOf([null, null], [1, 1], "sum_of_available")).toBeNull();
});

it("weighs the rows of a preview by the weights of the moment", () => {
  const { rows } = tableRows(found(), edgesOf(twoSources()));

  expect(rows.map(({ total }) => total)).toEqual([0.65, 0, 0.5]);
  expect(rows[1]?.failures[1]?.line).toBe(4);
  expect(rows[2]?.spread).toBe(1);
  expect(sorted(rows, "disagreement")[0]?.place).toBe(2);
  expect(sorted(rows, "failed")[0]?.place).toBe(1);
  expect(sorted(rows, "most").map(({ place }) => place)).toEqual([0, 2, 1]);
});

it("weighs several sources in one step", () => {
  const { store } = insideLoop({ document: twoSources() });
  const [first, second] = edgesOf(store.getState().document);

  store.dispatch(setWeights, {
    weights: { [first?.key ?? ""]: 0.2, [second?.key ?? ""]: 0.8 },
  });

  expect(edgesOf(store.getState().document).map(({ weight }) => weight)).toEqual([0.2, 0.8]);
  expect(store.undo()).toBe("Set reward weights");
  expect(edgesOf(store.getState().document).map(({ weight }) => weight)).toEqual([0.5, 0.3]);
});

it("offers every reward of the catalog, and one's own code with the signature", () => {
  const choices = scorerChoices(catalog, "Scores");
  const names = choices.map(({ name }) => name);

  expect(names).toEqual(expect.arrayContaining(["exact_match", "length", "python", "model"]));
  expect(new Set(names).size).toBe(names.length);
  const own = choices.filter(({ isCode }) => isCode);
  expect(own.map(({ name }) => name)).toEqual(["python"]);
  expect(codeOf(own[0]?.kind, own[0]?.data)?.text).toContain("def reward(prompts, completions");
});

it("adds a source with both its connections, and takes it back in one step", () => {
  const { store } = insideLoop();
  const before = store.getState().document;
  const [payee] = payees(catalog, before);
  const choice = scorerChoices(catalog, "Scores").find(({ isCode }) => isCode);
  if (!payee || !choice) throw new Error("nothing to add");

  const id = newSource(catalog, store, payee, choice);

  const { document } = store.getState();
  expect(document.edges.slice(-2)).toEqual([
    { from: "actor.rollouts", to: `${id}.rollouts` },
    { from: `${id}.scores`, to: "actor.rewards" },
  ]);
  expect(unconnected(catalog, document, payee)).toEqual([]);
  expect(store.undo()).toBe(`Add source ${id}`);
  expect(store.getState().document).toEqual(before);
});

it("reads rows as they are pasted", () => {
  expect(readPasted('[{"completion": "2"}, "3"]')).toEqual({
    rows: [{ completion: "2" }, { completion: "3" }],
  });
  expect(readPasted('{"a": 1}\n{"a": 2}')).toEqual({ rows: [{ a: 1 }, { a: 2 }] });
  expect(readPasted("one\n\n42")).toEqual({ rows: [{ completion: "one" }, { completion: "42" }] });
  expect(readPasted(" ")).toEqual({ problem: expect.any(String) });
  expect(readPasted("x\n".repeat(300))).toEqual({ problem: expect.stringContaining("300") });
});

it("says how scores are spread and go together", () => {
  expect(histogram([0, 0.05, 1, -1], 10)).toEqual({
    counts: [1, 0, 0, 0, 0, 2, 0, 0, 0, 1],
    low: -1,
    high: 1,
  });
  expect(correlation([0, 1, 2], [1, 2, 3])).toBeCloseTo(1);
  expect(correlation([0, 1, 2], [3, null, 1])).toBeCloseTo(-1);
  expect(correlation([0, 1], [1, 1])).toBeNull();
});

/** What is on the screen counts as read by the server. */
function WithSync({ sync, children }: { sync: object; children: ReactNode }) {
  const open = useOpenLoop();
  return (
    <OpenLoopProvider value={{ ...open, sync: sync as OpenLoop["sync"] }}>
      {children}
    </OpenLoopProvider>
  );
}

function openStudio(document = twoSources()) {
  const { store, wrapper: Inside } = insideLoop({ document });
  const sync = {
    flush: async () => {},
    present: () => ({ yaml: "the loop", check: null }),
  };
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>
      <Inside>
        <WithSync sync={sync}>{children}</WithSync>
      </Inside>
    </QueryClientProvider>
  );
  render(<Studio settings={(node) => <p>Settings of {node}</p>} />, { wrapper });
  return { store };
}

it("moves a weight, shows the total, and undoes it", () => {
  const { store } = openStudio();

  fireEvent.change(screen.getByLabelText("Weight of mine"), { target: { value: "0.8" } });

  expect(screen.getByTestId("total-weight").textContent).toBe("1.30");
  expect(store.undo()).toBe("Set reward weights");
  expect(edgesOf(store.getState().document)[1]?.weight).toBe(0.3);
});

it("combines rewards as the algorithm does where nothing is set", () => {
  openStudio();

  expect(screen.getByLabelText("Combine").textContent).toContain("as algorithm");
});

it("previews rows, shows the line that failed, and gives up on Cancel", async () => {
  openStudio();
  let signal: AbortSignal | undefined;
  routes.previewScores.mockImplementation((_, given: AbortSignal) => {
    signal = given;
    return new Promise((_done, fail) => {
      given.addEventListener("abort", () => fail(new DOMException("", "AbortError")));
    });
  });
  fireEvent.click(screen.getByRole("button", { name: "Run preview" }));
  fireEvent.click(await screen.findByRole("button", { name: "Cancel" }));
  await waitFor(() => expect(signal?.aborted).toBe(true));

  routes.previewScores.mockResolvedValue(found());
  fireEvent.click(await screen.findByRole("button", { name: "Run preview" }));

  const table = within(await screen.findByRole("region", { name: "Scores" }));
  expect(routes.previewScores.mock.lastCall?.[0]).toMatchObject({
    yaml: "the loop",
    learner: "actor",
    rows: { type: "of_dataset", node: "problems" },
  });
  expect(table.getByText("line 4")).toBeTruthy();
  expect(table.getByText("0.65")).toBeTruthy();
  expect(table.getAllByText("sources disagree").length).toBe(1);
  expect(screen.getByText(/1 row failed/)).toBeTruthy();
});

it("says how long the sources were asked for, and when the service stops them", async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  try {
    openStudio();
    routes.previewScores.mockImplementation(() => new Promise(() => {}));
    fireEvent.click(screen.getByRole("button", { name: "Run preview" }));
    await screen.findByRole("button", { name: "Cancel" });
    expect(screen.queryByRole("timer")).toBeNull();

    await act(() => vi.advanceTimersByTimeAsync(12_000));

    expect(screen.getByRole("timer").textContent).toMatch(
      /^scoring for 1[12] s, stopped after 42 s$/,
    );
  } finally {
    vi.useRealTimers();
  }
});

it("what was found of other code is not said of this one, and each source has its own colour", async () => {
  const { store } = openStudio();
  routes.previewScores.mockResolvedValue(found());
  fireEvent.click(screen.getByRole("button", { name: /^mine/ }));
  fireEvent.click(screen.getByRole("button", { name: "Run preview" }));
  const scores = await screen.findByRole("region", { name: "Scores" });
  expect(screen.getByText(/division by zero in 1 of 3 rows/)).toBeTruthy();

  const code = "def reward(completions): return [0.0] * len(completions)\n";
  act(() => store.dispatch(setField, { node: "mine", path: ["source", "code"], value: code }));

  expect(screen.queryByText(/division by zero in 1 of 3 rows/)).toBeNull();
  const marks = [...scores.querySelectorAll<HTMLElement>("thead button > span")];
  const colors = marks.map(({ style }) => style.background).filter((color) => color !== "");
  expect(new Set(colors).size).toBe(2);
});
