import { useCallback, useMemo } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { fetchLoopYaml } from "@/api/routes";
import { download } from "@/lib/download";
import { leaveField } from "@/state/choosing";
import { useOpenLoop } from "@/state/document/context";
import { clearSelection, select, useSelection } from "@/state/selection";
import { NOT_SAVED, pendingText } from "@/state/sync/state";

export function useExport() {
  const { store } = useOpenLoop();
  const text = useLoopText();
  return useMemo(() => {
    const attempt = async (ending: string, make: () => Promise<string | Uint8Array>) => {
      try {
        download(`${store.getState().document.name}.${ending}`, await make());
      } catch (error) {
        toast.error(`The loop could not be exported. ${errorMessage(error)}`);
      }
    };
    return {
      exportYaml: () => attempt("yaml", text),
      exportPng: () =>
        attempt("png", async () => {
          const [yaml, { makeLoopPng }] = await Promise.all([text(), import("./loopPng")]);
          return withoutSelection(() => makeLoopPng(yaml));
        }),
    };
  }, [store, text]);
}

async function withoutSelection<T>(work: () => Promise<T>): Promise<T> {
  const { nodes, edges, phase, entry } = useSelection.getState();
  clearSelection();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  try {
    return await work();
  } finally {
    select({ nodes, edges, phase, entry });
  }
}

/** The YAML that the user sees: as the server has it after saving what is new, or as it was typed. */
export function useLoopText(): () => Promise<string> {
  const { loopId, store, sync, syncStore } = useOpenLoop();
  return useCallback(async () => {
    leaveField();
    await sync?.flush();
    const typed = pendingText(syncStore.getState());
    const { save, revision } = syncStore.getState();
    const isSaved = sync !== null && save === "saved" && revision !== NOT_SAVED;
    const saved = typed === null && loopId && isSaved ? await fetchLoopYaml(loopId) : null;
    return typed ?? saved ?? store.getState().text;
  }, [loopId, store, sync, syncStore]);
}
