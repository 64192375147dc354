import { useCallback } from "react";
import type { ModeInfo } from "@/api/types";
import { modeNamed } from "@/catalog/modes";
import { setValue } from "./commands/setValue";
import { useDocument, useOpenLoop, useSync } from "./context";

/** The mode that the loop names; where it names none, the one that the server finds in its graph. */
export function useMode(): ModeInfo {
  const { catalog } = useOpenLoop();
  const named = useDocument((state) => state.document.rest.mode);
  const found = useSync((state) => state.check?.mode);
  return modeNamed(catalog, named ?? found ?? undefined);
}

/** Names another mode in the loop; everything else of it stays as it is. */
export function useSetMode(): (mode: ModeInfo) => void {
  const { store } = useOpenLoop();
  return useCallback(
    (mode) =>
      store
        .getState()
        .dispatch(
          setValue,
          { path: ["mode"], value: mode.name },
          { label: `Mode: ${mode.title.toLowerCase()}` },
        ),
    [store],
  );
}
