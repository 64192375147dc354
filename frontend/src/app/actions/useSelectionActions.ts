import { useMemo } from "react";
import { edgeKeys } from "@/document/edges";
import type { Action } from "@/state/actions";
import { useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { useClipboard } from "@/state/useClipboard";

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
