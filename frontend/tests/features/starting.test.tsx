// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { toast } from "sonner";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { JsonObject, Loop } from "@/api/types";
import { useExport } from "@/features/loops/useExport";
import { runReason, useRunControls } from "@/features/runs/start/useRunControls";
import { download } from "@/lib/download";
import { setValue } from "@/state/commands/fields";
import { OpenLoopProvider } from "@/state/document/context";
import { createDocumentStore } from "@/state/document/store";
import { setPreferences, usePreferences } from "@/state/preferences";
import type { DraftStore } from "@/state/sync/drafts";
import { LoopSync } from "@/state/sync/LoopSync";
import { createSyncStore, type SyncState } from "@/state/sync/state";
import type { SyncApi } from "@/state/sync/versions";
import { catalog, smallLoop } from "../fixtures/loops";
import { aProblem, aRun } from "../fixtures/runs";

vi.mock("@/lib/download", () => ({ download: vi.fn() }));

const BROKEN = { brokenText: { text: "{ broken", diagnostics: [] } };
const ERRORS = {
  check: {
    report: { ok: false, diagnostics: [aProblem({})] },
    estimate: null,
    plan: null,
    mode: null,
  },
};

const NO_DRAFTS: DraftStore = {
  read: async () => undefined,
  write: async () => {},
  remove: async () => {},
};

const CHECK = { report: { ok: true, diagnostics: [] }, estimate: null, plan: null, mode: null };

/** The server writes the seed of a loop as its text, and takes its time. */
const server = {
  check: async () => CHECK,
  saveDocument: async (_id: string, { yaml, spec }: { yaml: string; spec?: JsonObject }) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { revision: "r1", yaml: spec ? seedOf(spec) : yaml, spec: null, check: CHECK };
  },
  fetchLoop: async () => loop,
} as unknown as SyncApi;

const loop = { id: "l", name: "small", revision: "r1", yaml: "name: small\n", spec: {} } as Loop;

function seedOf(spec: JsonObject): string {
  return `seed ${(spec.run as JsonObject).seed}`;
}

function open<T>(hook: () => T, state: Partial<SyncState>, store = aStore()): T {
  const sync = new LoopSync(loop, store, server, NO_DRAFTS);
  const syncStore = sync.store;
  syncStore.setState(state);
  if (state.check) vi.spyOn(sync, "flush").mockResolvedValue();
  const value = { loopId: "l", runId: null, store, syncStore, sync, catalog };
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>
      <OpenLoopProvider value={value}>{children}</OpenLoopProvider>
    </QueryClientProvider>
  );
  return renderHook(hook, { wrapper }).result.current;
}

function aStore() {
  return createDocumentStore({ document: smallLoop(), text: "name: small\n" });
}

describe("running and exporting what is on the screen", () => {
  beforeEach(() => {
    vi.spyOn(routes, "startRun").mockResolvedValue(aRun());
    vi.spyOn(toast, "error").mockReturnValue("");
  });
  afterEach(() => {
    cleanup();
    vi.restoreAllMocks();
  });

  it("says why a loop cannot be run", () => {
    const state = createSyncStore("r1").getState();

    expect(runReason(state, false, catalog)).toBeNull();
    expect(runReason(state, true, catalog)).toMatch(/nothing to run/);
    expect(runReason({ ...state, ...BROKEN }, false, catalog)).toMatch(/is invalid/);
    expect(runReason({ ...state, checkStatus: "offline" }, false, catalog)).toMatch(
      /is not responding/,
    );
    expect(runReason({ ...state, ...ERRORS }, false, catalog)).toBe("1 error to fix first.");
    const step = aProblem({ code: "structure.missing_edge", message: "`actor` gets no prompts" });
    const report = { ok: false, diagnostics: [step] };
    const unfinished = { ...state, check: { report, estimate: null, plan: null, mode: null } };
    expect(runReason(unfinished, false, catalog)).toBe("Not finished: actor gets no prompts.");
  });

  it("a sound loop is run", async () => {
    const { start } = open(useRunControls, {});

    await act(async () => start());

    expect(routes.startRun).toHaveBeenCalledOnce();
  });

  it("what is edited while Run waits for the server is what runs", async () => {
    const store = aStore();
    const { start } = open(useRunControls, {}, store);
    const seed = (value: number) => store.dispatch(setValue, { path: ["run", "seed"], value });
    seed(5);

    await act(async () => {
      start();
      await new Promise((resolve) => setTimeout(resolve, 5));
      seed(6);
      await vi.waitFor(() => expect(routes.startRun).toHaveBeenCalled());
    });

    expect(vi.mocked(routes.startRun).mock.calls[0]?.[0]).toMatchObject({ yaml: "seed 6" });
  });

  it("a loop that could not be brought up to date is not run", async () => {
    const { start } = open(useRunControls, {
      checkStatus: "done",
      check: { report: { ok: true, diagnostics: [] }, estimate: null, plan: null, mode: null },
      checkedText: "an older text",
    });

    await act(async () => start());

    expect(routes.startRun).not.toHaveBeenCalled();
    expect(toast.error).toHaveBeenCalledOnce();
  });

  it.each([
    ["text that does not read", BROKEN, "yaml"],
    ["errors", ERRORS, "problems"],
  ])("with %s nothing is run, and the place to mend it opens", async (_, state, dockTab) => {
    setPreferences({ isDockOpen: false, dockTab: "memory" });
    const { start } = open(useRunControls, state);

    await act(async () => start());

    expect(routes.startRun).not.toHaveBeenCalled();
    expect(toast.error).toHaveBeenCalledOnce();
    expect(usePreferences.getState()).toMatchObject({ isDockOpen: true, dockTab });
  });

  it("text that does not read is exported as it was typed", async () => {
    const { exportYaml } = open(useExport, BROKEN);

    await act(() => exportYaml());

    expect(download).toHaveBeenCalledWith("small.yaml", "{ broken");
  });
});
