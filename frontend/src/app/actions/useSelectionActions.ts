import { useMemo } from "react";
import { useOpenLoop } from "@/document/context";
import { edgeKeys } from "@/document/edges";
import type { Action } from "@/session/actions";
import { useSelection } from "@/session/selection";
import { useClipboard } from "@/session/useClipboard";

/** What can be done with the selection of any graph, a run's as well. */
export function useSelectionActions(): Action[] {
  const { store } = useOpenLoop();
  const { copy } = useClipboard();
  return useMemo(
    () => [
      {
        id: "selectAll",
        label: "Select everything",
        keys: ["mod+a"],
        section: "Edit",
        run: () => {
          const { document } = store.getState();
          useSelection
            .getState()
            .select({ nodes: Object.keys(document.nodes), edges: edgeKeys(document.edges) });
        },
      },
      {
        id: "copy",
        label: "Copy",
        keys: ["mod+c"],
        section: "Edit",
        isEnabled: () => useSelection.getState().nodes.length > 0 && !hasTextSelection(),
        run: () => void copy(useSelection.getState().nodes),
      },
      {
        id: "clear",
        label: "Clear the selection",
        keys: ["escape"],
        section: "Edit",
        run: () => useSelection.getState().clear(),
      },
    ],
    [store, copy],
  );
}

function hasTextSelection(): boolean {
  return (window.getSelection()?.toString() ?? "") !== "";
}
