import { useCallback } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { fetchLoopYaml } from "@/api/routes";
import { useOpenLoop } from "@/document/context";
import { NOT_SAVED } from "@/document/sync/Saver";
import { pendingText } from "@/document/sync/state";
import { download } from "@/lib/download";

/** Downloads the YAML that the user sees: as the server has it after saving what is new, or as it was typed. */
export function useExport(): () => Promise<void> {
  const { loopId, store, sync, syncStore } = useOpenLoop();
  return useCallback(async () => {
    const { document } = store.getState();
    try {
      await sync?.flush();
      const typed = pendingText(syncStore.getState());
      const { save, revision } = syncStore.getState();
      const isSaved = sync !== null && save === "saved" && revision !== NOT_SAVED;
      const saved = typed === null && loopId && isSaved ? await fetchLoopYaml(loopId) : null;
      download(`${document.name}.yaml`, typed ?? saved ?? store.getState().text);
    } catch (error) {
      toast.error(`The loop could not be exported. ${errorMessage(error)}`);
    }
  }, [loopId, store, sync, syncStore]);
}
