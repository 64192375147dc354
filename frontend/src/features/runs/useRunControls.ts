import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { ApiError, errorMessage } from "@/api/client";
import { startRun } from "@/api/routes";
import type { Diagnostic } from "@/api/types";
import { useOpenLoop } from "@/document/context";
import { useDialogs } from "@/session/dialogs";
import { usePreferences } from "@/session/preferences";
import { useStarting } from "./starting";

interface RunControls {
  start: (options?: { force: boolean }) => void;
}

/** Starts the open loop as it stands. Over budget asks first; errors lead to the problems. */
export function useRunControls(): RunControls {
  const { loopId, store, sync } = useOpenLoop();
  const [, navigate] = useLocation();
  const client = useQueryClient();

  return useMemo(() => {
    const start = async (force: boolean) => {
      if (useStarting.getState().isStarting) return;
      useStarting.setState({ isStarting: true });
      try {
        await sync?.flush();
        const check = sync?.store.getState().check;
        if (check && !check.report.ok) {
          usePreferences.getState().set({ isDockOpen: true, dockTab: "problems" });
          toast.error("The loop has errors. Mend them, then run it.");
          return;
        }
        if (!force && check?.estimate?.gpus.some((gpu) => !gpu.fits)) {
          useDialogs.getState().show("confirmRun");
          return;
        }
        const { text } = store.getState();
        const run = await startRun({ yaml: text, ...(loopId ? { loop_id: loopId } : {}), force });
        useDialogs.getState().show(null);
        await client.invalidateQueries({ queryKey: ["runs"] });
        navigate(`/runs/${run.id}`);
      } catch (error) {
        if (error instanceof ApiError && error.code === "memory.over_budget") {
          useDialogs.getState().show("confirmRun");
        } else {
          toast.error("The run did not start.", { description: refusal(error) });
        }
      } finally {
        useStarting.setState({ isStarting: false });
      }
    };
    return { start: (options) => void start(options?.force ?? false) };
  }, [loopId, store, sync, navigate, client]);
}

function refusal(error: unknown): string {
  const detail = error instanceof ApiError ? error.detail : null;
  if (typeof detail === "object" && detail !== null && "diagnostics" in detail) {
    const found = (detail as { diagnostics: Diagnostic[] }).diagnostics.find(
      (one) => one.severity === "error",
    );
    if (found) return [found.message, found.hint].filter(Boolean).join(" ");
  }
  return errorMessage(error);
}
