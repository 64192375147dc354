// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { toast } from "sonner";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import { OpenLoopProvider } from "@/document/context";
import { createDocumentStore } from "@/document/store";
import { createSyncStore, type SyncState } from "@/document/sync/state";
import { download } from "@/features/loops/download";
import { useExport } from "@/features/loops/useExport";
import { runReason } from "@/features/runs/runReason";
import { useRunControls } from "@/features/runs/useRunControls";
import { usePreferences } from "@/session/preferences";
import { catalog, smallLoop } from "../fixtures/loops";
import { aProblem, aRun } from "../fixtures/runs";

vi.mock("@/features/loops/download", () => ({ download: vi.fn() }));

const BROKEN = { brokenText: { text: "{ broken", diagnostics: [] } };
const ERRORS = {
  check: { report: { ok: false, diagnostics: [aProblem({})] }, estimate: null, plan: null },
};

function open<T>(hook: () => T, state: Partial<SyncState>): T {
  const store = createDocumentStore({ document: smallLoop(), text: "name: small\n" });
  const syncStore = createSyncStore("r1");
  syncStore.setState(state);
  const value = { loopId: "l", runId: null, store, syncStore, sync: null, catalog };
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>
      <OpenLoopProvider value={value}>{children}</OpenLoopProvider>
    </QueryClientProvider>
  );
  return renderHook(hook, { wrapper }).result.current;
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

    expect(runReason(state, false)).toBeNull();
    expect(runReason(state, true)).toMatch(/nothing to run/);
    expect(runReason({ ...state, ...BROKEN }, false)).toMatch(/does not read/);
    expect(runReason({ ...state, checkStatus: "offline" }, false)).toMatch(/does not answer/);
    expect(runReason({ ...state, ...ERRORS }, false)).toBe("1 error to mend first.");
  });

  it("a sound loop is run", async () => {
    const { start } = open(useRunControls, {});

    await act(async () => start());

    expect(routes.startRun).toHaveBeenCalledOnce();
  });

  it.each([
    ["text that does not read", BROKEN, "yaml"],
    ["errors", ERRORS, "problems"],
  ])("with %s nothing is run, and the place to mend it opens", async (_, state, dockTab) => {
    usePreferences.getState().set({ isDockOpen: false, dockTab: "memory" });
    const { start } = open(useRunControls, state);

    await act(async () => start());

    expect(routes.startRun).not.toHaveBeenCalled();
    expect(toast.error).toHaveBeenCalledOnce();
    expect(usePreferences.getState()).toMatchObject({ isDockOpen: true, dockTab });
  });

  it("text that does not read is exported as it was typed", async () => {
    const exportYaml = open(useExport, BROKEN);

    await act(() => exportYaml());

    expect(download).toHaveBeenCalledWith("small.yaml", "{ broken");
  });
});
