import { useMemo } from "react";
import type { Field } from "@/catalog/schema";
import { useLive } from "@/live/hooks";
import { isFinal } from "@/live/reducer";
import { useDocument, useOpenLoop } from "@/state/document/context";

interface Locks {
  isLocked: (field: Field) => boolean;
  lockReason: string | null;
}

/** In a run only hot fields may change, and only while it goes on. */
export function useLocks(): Locks {
  const { runId } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const isOver = useLive("status", (live) => isFinal(live.run?.state ?? live.state.state), false);
  return useMemo(() => {
    if (runId !== null) {
      return {
        isLocked: (field: Field) => isOver || !field.isHot,
        lockReason: isOver
          ? "The run is over. Open its loop to change it."
          : "Only fields marked with a flame can be changed during a run.",
      };
    }
    return {
      isLocked: () => isReadonly,
      lockReason: isReadonly ? "The YAML is invalid. Fix or discard it first." : null,
    };
  }, [runId, isReadonly, isOver]);
}
