import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { create } from "zustand";
import { ApiError, errorMessage } from "@/api/client";
import { startRun } from "@/api/routes";
import type { Catalog } from "@/api/types";
import { countProblems, plainText, refusalOf, splitProblems } from "@/document/problems";
import { formatPlural } from "@/lib/format";
import { leaveField } from "@/state/choosing";
import { showDialog } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { setPreferences } from "@/state/preferences";
import type { SyncState } from "@/state/sync/state";
import { withTrust } from "./TrustDialog";

export function useRunControls() {
  const { catalog, loopId, store, sync, syncStore } = useOpenLoop();
  const [, navigate] = useLocation();
  const client = useQueryClient();

  return useMemo(() => {
    const start = async (force: boolean) => {
      if (useStarting.getState().isStarting) return;
      useStarting.setState({ isStarting: true });
      leaveField();
      try {
        await sync?.keep();
        const state = syncStore.getState();
        const isEmpty = Object.keys(store.getState().document.nodes).length === 0;
        const reason = runReason(state, isEmpty, catalog);
        const present = sync?.present() ?? null;
        if (reason !== null || present === null) {
          toast.error(reason ?? "The loop on the screen has not been checked yet. Try again.");
          showWhy(state);
          return;
        }
        const { yaml, check } = present;
        const isDoubtful = check.missing || check.estimate?.gpus.some((gpu) => gpu.fits === false);
        if (!force && isDoubtful) {
          showDialog("confirmRun");
          return;
        }
        const asked = { yaml, ...(loopId ? { loop_id: loopId } : {}), force };
        const run = await withTrust((trust) => startRun({ ...asked, trust }));
        if (run === null) return;
        showDialog(null);
        await client.invalidateQueries({ queryKey: ["runs"] });
        navigate(`/runs/${run.id}`);
      } catch (error) {
        if (error instanceof ApiError && error.code === "memory.over_budget") {
          showDialog("confirmRun");
        } else {
          toast.error("The run did not start.", { description: refusal(error) });
        }
      } finally {
        useStarting.setState({ isStarting: false });
      }
    };
    return { start: (options?: { force: boolean }) => void start(options?.force ?? false) };
  }, [catalog, loopId, store, sync, syncStore, navigate, client]);
}

function showWhy({ brokenText, check }: SyncState): void {
  if (brokenText !== null) setPreferences({ isDockOpen: true, dockTab: "yaml" });
  else if (check?.report.ok === false) setPreferences({ isDockOpen: true, dockTab: "problems" });
}

function refusal(error: unknown): string {
  const diagnostics = error instanceof ApiError ? error.diagnostics : [];
  const fault = diagnostics.find(({ severity }) => severity === "error");
  return fault ? [fault.message, fault.hint].filter(Boolean).join(" ") : errorMessage(error);
}

/** Whether a run is being started right now; a second press changes nothing. */
export const useStarting = create<{ isStarting: boolean }>()(() => ({ isStarting: false }));

export function runReason(
  { check, checkStatus, brokenText }: SyncState,
  isEmpty: boolean,
  catalog: Pick<Catalog, "unfinished">,
): string | null {
  if (brokenText !== null) return "The YAML is invalid. Fix or discard it first.";
  if (isEmpty) return "There is nothing to run yet.";
  if (checkStatus === "offline") return "The server is not responding.";
  const diagnostics = check?.report.diagnostics ?? [];
  const { faults, steps } = splitProblems(catalog, diagnostics);
  const { error } = countProblems(faults);
  if (error > 0) return `${formatPlural(error, "error")} to fix first.`;
  const step = steps.find(({ severity }) => severity === "error");
  if (step) return `Not finished: ${plainText(step.message)}.`;
  return refusalOf(diagnostics);
}
