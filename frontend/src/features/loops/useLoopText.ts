import { useCallback } from "react";
import { fetchLoopYaml } from "@/api/routes";
import { useOpenLoop } from "@/document/context";
import { NOT_SAVED, pendingText } from "@/document/sync/state";
import { leaveField } from "@/session/leaveField";

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
