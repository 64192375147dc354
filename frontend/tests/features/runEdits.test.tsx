// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { Json, JsonObject, RunEvent } from "@/api/types";
import { defaultAt } from "@/document/fieldAt";
import { NodeInspector } from "@/features/inspector/NodeInspector";
import { RunEditBar } from "@/features/runs/live/RunBanner";
import { followEdits, withEdits } from "@/features/runs/live/useWatchedRun";
import { parsePath, readPath } from "@/lib/paths";
import { LiveRun } from "@/live/LiveRun";
import { setValue } from "@/state/commands/fields";
import { setPreferences } from "@/state/preferences";
import { useRunEdits } from "@/state/runEdits";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aRun } from "../fixtures/runs";

const LR = "nodes.actor.training.optimizer.lr";
const ROWS = "nodes.problems.rows_per_step";

let stop = () => {};

function watch() {
  const live = new LiveRun("r");
  const { store, wrapper } = insideLoop({ live });
  stop = followEdits(live, store);
  let seq = 0;
  const tell = (type: string, rest: JsonObject) => {
    seq += 1;
    const at = "2026-01-01T00:00:00Z";
    live.applyEvents([{ seq, at, run: "r", attempt: 1, type, ...rest } as RunEvent]);
    vi.advanceTimersByTime(300);
  };
  const value = (path: string) => readPath(store.getState().document, parsePath(path));
  /** As the form does it. */
  const type = (path: string, next: Json) => {
    store.dispatch(setValue, { path: parsePath(path), value: next }, { isHotEdit: true });
    useRunEdits.getState().set(path, next);
  };
  return { store, wrapper, tell, value, type };
}

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  vi.spyOn(routes, "editRun").mockResolvedValue(aRun());
  useRunEdits.getState().clear();
  setPreferences({ level: catalog.levels.at(-1) ?? "" });
});
afterEach(() => {
  stop();
  cleanup();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("the form of a run", () => {
  it("shows what was changed since the run started", () => {
    const { tell, value } = watch();

    tell("edit", { changes: { [LR]: 0.01, "edges.outcome.weight": 2 }, step: 3 });

    expect(value(LR)).toBe(0.01);
    expect(value("edges.3.weight")).toBe(2);
  });

  it("discarding keeps what was applied before", async () => {
    const { wrapper, value, type } = watch();
    render(
      <QueryClientProvider client={new QueryClient()}>
        <RunEditBar />
      </QueryClientProvider>,
      { wrapper },
    );
    type(LR, 0.01);
    fireEvent.click(await screen.findByRole("button", { name: "Apply to the run" }));
    await waitFor(() => expect(useRunEdits.getState().sent).toEqual({ [LR]: 0.01 }));
    type(LR, 0.5);
    type(ROWS, 99);

    fireEvent.click(await screen.findByRole("button", { name: "Discard" }));

    expect(value(LR)).toBe(0.01);
    expect(value(ROWS)).toBe(8);
    expect(routes.editRun).toHaveBeenCalledWith("r", { [LR]: 0.01 });
  });

  it("goes back where the run refuses what was sent", () => {
    const { tell, value, type } = watch();
    type(LR, 0.01);
    useRunEdits.getState().send({ [LR]: 0.01 });
    expect(value(LR)).toBe(0.01);

    tell("alert", { level: "warning", code: "control.edit_refused", message: "no" });

    expect(value(LR)).toBe(0.001);
  });

  it("an edit that is told of keeps what is typed elsewhere", () => {
    const { tell, value, type } = watch();
    type(ROWS, 99);

    tell("edit", { changes: { [LR]: 0.01 }, step: 3 });

    expect(value(LR)).toBe(0.01);
    expect(value(ROWS)).toBe(99);
    expect(useRunEdits.getState().changes).toEqual({ [ROWS]: 99 });
  });

  it("a field that is put back is told its default", () => {
    const { wrapper } = watch();
    render(<NodeInspector id="actor" />, { wrapper });
    const input = screen.getByLabelText("Learning rate");

    fireEvent.change(input, { target: { value: "" } });

    const fallback = defaultAt(catalog, smallLoop(), parsePath(LR));
    expect(fallback).toBeTypeOf("number");
    expect(useRunEdits.getState().changes).toEqual({ [LR]: fallback });
  });
});

describe("values over a loop", () => {
  it("a path into a node or edge that is not there changes nothing", () => {
    const loop = smallLoop();

    expect(withEdits(loop, { "nodes.gone.lr": 1, "edges.gone.weight": 1 })).toBe(loop);
  });
});

describe("defaults by path", () => {
  it("a preset's default stands before the schema's", () => {
    const loop = smallLoop();
    const [port, list] = Object.entries(catalog.algorithms)[0] ?? ["", []];
    const preset = list.find((one) => Object.keys(one.defaults ?? {}).length > 0);
    const [name, value] = Object.entries(preset?.defaults ?? {})[0] ?? [];
    loop.nodes.actor = { kind: "actor", algorithm: { [port]: { name: preset?.name ?? "" } } };

    expect(defaultAt(catalog, loop, ["nodes", "actor", "algorithm", port, name ?? ""])).toEqual(
      value,
    );
  });

  it("edges and the parts of the loop have theirs", () => {
    expect(defaultAt(catalog, smallLoop(), ["edges", "outcome", "weight"])).toBe(1);
    expect(defaultAt(catalog, smallLoop(), ["run", "keep"])).toBeTypeOf("number");
    expect(defaultAt(catalog, smallLoop(), ["nodes", "actor", "no_such_field"])).toBeUndefined();
  });
});
