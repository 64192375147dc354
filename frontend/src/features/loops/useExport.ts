import { useCallback } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { fetchLoopYaml } from "@/api/routes";
import { useOpenLoop } from "@/document/context";
import { download } from "./download";

/** Downloads the loop's YAML as the server has it, after saving what is new. */
export function useExport(): () => Promise<void> {
  const { loopId, store, sync } = useOpenLoop();
  return useCallback(async () => {
    const { document } = store.getState();
    try {
      await sync?.flush();
      const isSaved = sync?.store.getState().save === "saved";
      const text = loopId && isSaved ? await fetchLoopYaml(loopId) : store.getState().text;
      download(`${document.name}.yaml`, text);
    } catch (error) {
      toast.error(`The loop could not be exported. ${errorMessage(error)}`);
    }
  }, [loopId, store, sync]);
}
