// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { Loop, LoopVersion, RunSummary } from "@/api/types";
import { toSpec } from "@/document/convert";
import { History } from "@/features/history/History";
import { UndoList } from "@/features/history/HistoryDialog";
import { RunMenu } from "@/features/runs/list/RunMenu";
import { setField } from "@/state/commands/fields";
import { OpenLoopProvider } from "@/state/document/context";
import { createDocumentStore } from "@/state/document/store";
import type { LoopSync } from "@/state/sync/LoopSync";
import { createSyncStore } from "@/state/sync/state";
import { presetAddress, presetOf } from "@/state/unsaved";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aRun } from "../fixtures/runs";

function aVersion(change: Partial<LoopVersion>): LoopVersion {
  return {
    version: 1,
    revision: "r1",
    name: "loop",
    label: null,
    reason: "edited",
    restored_from: null,
    runs: 0,
    is_kept: false,
    started_at: "2026-01-01T00:00:00Z",
    saved_at: "2026-01-01T00:00:00Z",
    ...change,
  };
}

const VERSIONS = [
  aVersion({ version: 3, reason: "restored", restored_from: 1, is_kept: true }),
  aVersion({ version: 2, label: "good start", runs: 2, is_kept: true }),
  aVersion({ version: 1, reason: "created", is_kept: true }),
];

function show(content: React.ReactNode): void {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(<QueryClientProvider client={client}>{content}</QueryClientProvider>);
}

/** What the loop is now: a node more, one less, one with another value. */
function later() {
  const document = smallLoop();
  document.name = "loop";
  Object.assign(document.nodes.problems ?? {}, { rows_per_step: 16 });
  delete document.nodes.start;
  document.nodes.more = { kind: "dataset" };
  document.edges = document.edges.filter(({ to }) => !to.startsWith("start."));
  return document;
}

function showHistory() {
  vi.spyOn(routes, "fetchVersions").mockResolvedValue({ items: VERSIONS, total: 3 });
  const diff = vi.spyOn(routes, "fetchVersionDiff").mockResolvedValue({
    lines: [
      { kind: "removed", text: "steps: 3" },
      { kind: "added", text: "steps: 4" },
    ],
  });
  const { name, ...then } = smallLoop();
  vi.spyOn(routes, "fetchVersion").mockResolvedValue({
    ...aVersion({}),
    yaml: "",
    spec: toSpec({ name, ...then }),
  });
  const adopt = vi.fn();
  const open = {
    loopId: "l",
    runId: null,
    store: createDocumentStore({ document: later(), text: "" }),
    syncStore: createSyncStore("r3"),
    sync: { adopt } as unknown as LoopSync,
    catalog,
  };
  const onRestored = vi.fn();
  show(
    <OpenLoopProvider value={open}>
      <History loopId="l" onRestored={onRestored} />
    </OpenLoopProvider>,
  );
  return { adopt, diff, onRestored };
}

describe("the history of a loop", () => {
  afterEach(() => {
    cleanup();
    vi.restoreAllMocks();
  });

  it("says why each version is there and what changed since the one before", async () => {
    const { diff } = showHistory();
    const titles = await screen.findAllByRole("button", { pressed: false });
    expect(titles[0]?.textContent).toContain("Restored from version 1");
    expect(screen.getByRole("button", { pressed: true }).textContent).toContain("good start");
    expect(screen.getByText("2 runs")).toBeTruthy();
    expect(await screen.findByText("rows_per_step 8 → 16")).toBeTruthy();
    expect(screen.getByText("removed").previousElementSibling?.textContent).toBe("start");

    fireEvent.click(screen.getByRole("radio", { name: "Graph" }));
    const words = "problems changed, start removed, more added";
    expect(screen.getByRole("img").getAttribute("aria-label")).toBe(words);

    fireEvent.click(screen.getByRole("radio", { name: "Text" }));
    expect(await screen.findByText("steps: 4")).toBeTruthy();
    expect(diff).toHaveBeenCalledWith("l", 2);
  });

  it("restores the chosen version over the one that is known", async () => {
    const { adopt, onRestored } = showHistory();
    const loop = { id: "l", revision: "r4" } as Loop;
    const restore = vi.spyOn(routes, "restoreVersion").mockResolvedValue(loop);
    fireEvent.click((await screen.findByText("Created")).closest("button") as HTMLElement);

    fireEvent.click(screen.getByRole("button", { name: "Restore" }));

    await waitFor(() => expect(onRestored).toHaveBeenCalledOnce());
    expect(restore).toHaveBeenCalledWith("l", 1, "r3");
    expect(adopt).toHaveBeenCalledWith(loop, "Restore version 1");
  });

  it("the newest version is not restored, and a name is given or taken away", async () => {
    showHistory();
    const label = vi.spyOn(routes, "labelVersion").mockResolvedValue(aVersion({}));
    fireEvent.click((await screen.findByText("good start")).closest("button") as HTMLElement);
    fireEvent.change(screen.getByLabelText("Name of version 2"), { target: { value: " " } });
    fireEvent.click(screen.getByRole("button", { name: "Remove name" }));
    await waitFor(() => expect(label).toHaveBeenCalledWith("l", 2, null));

    const newest = screen.getByText("Restored from version 1").closest("button") as HTMLElement;
    fireEvent.click(newest);
    expect(screen.getByRole("button", { name: "Restore" })).toHaveProperty("disabled", true);
  });
});

describe("what was done in this visit", () => {
  afterEach(cleanup);

  it("is listed by its labels, and a press goes to where it was done and back", () => {
    const { wrapper: Wrapper, store } = insideLoop();
    const set = (value: number) =>
      store.dispatch(
        setField,
        { node: "problems", path: ["rows_per_step"], value },
        { label: `Set ${value}`, group: "nodes.problems.rows_per_step", at: value * 10_000 },
      );
    for (const value of [1, 2, 3]) set(value);
    render(
      <Wrapper>
        <UndoList />
      </Wrapper>,
    );
    const rows = () => store.getState().document.nodes.problems?.rows_per_step;

    fireEvent.click(screen.getByRole("button", { name: /^Set 1/ }));
    expect(rows()).toBe(1);
    expect(screen.getByRole("button", { current: true }).textContent).toContain("Set 1");
    fireEvent.click(screen.getByRole("button", { name: /^Set 3 \(undone\)/ }));
    expect(rows()).toBe(3);
    fireEvent.click(screen.getByRole("button", { name: "As opened" }));
    expect(rows()).toBe(8);
  });
});

describe("a run in the list", () => {
  afterEach(() => {
    cleanup();
    vi.restoreAllMocks();
  });

  const openMenu = (run: RunSummary) => {
    show(<RunMenu run={run} />);
    fireEvent.keyDown(screen.getByRole("button", { name: `More for ${run.name}` }), {
      key: "Enter",
    });
  };

  it("is deleted after a question", async () => {
    const remove = vi.spyOn(routes, "deleteRun").mockResolvedValue(undefined);
    openMenu(aRun({ state: "finished" }));
    fireEvent.click(await screen.findByText("Delete…"));
    expect(remove).not.toHaveBeenCalled();

    fireEvent.click(await screen.findByRole("button", { name: "Delete" }));

    await waitFor(() => expect(remove).toHaveBeenCalledWith("r"));
  });

  it("is not deleted while it goes on", async () => {
    openMenu(aRun({ state: "running" }));
    const item = (await screen.findByText("Stop it before deleting")).closest("[role=menuitem]");
    expect(item?.getAttribute("aria-disabled")).toBe("true");
  });
});

it("a preset has an address of its own each time it is looked at", () => {
  const [one, two] = [presetAddress("two-halves"), presetAddress("two-halves")];
  expect(one).not.toBe(two);
  expect(presetOf(one.slice(one.indexOf("?")))).toBe("two-halves");
  expect(presetOf("?tab=log")).toBeNull();
});
