import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useMemo } from "react";
import { toast } from "sonner";
import type { Action } from "@/state/actions";
import { toLoop } from "@/state/canvas";
import { removeItems } from "@/state/commands/nodes";
import { showAddSearch } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { clearSelection, useSelection } from "@/state/selection";
import { useArrange } from "@/state/useArrange";
import { useClipboard } from "@/state/useClipboard";

export function useEditActions(): Action[] {
  const { store } = useOpenLoop();
  const { screenToFlowPosition } = useReactFlow();
  const flowStore = useStoreApi();
  const { arrange } = useArrange();
  const { cut, duplicate } = useClipboard();

  return useMemo(() => {
    const canEdit = () => !store.getState().isReadonly;
    const hasNodes = () => useSelection.getState().nodes.length > 0;
    const addAtMiddle = () => {
      const box = flowStore.getState().domNode?.getBoundingClientRect();
      const screen = {
        x: (box?.left ?? 0) + (box?.width ?? 0) / 2 - 144,
        y: (box?.top ?? 0) + (box?.height ?? 0) / 3,
      };
      showAddSearch({ screen, flow: toLoop(screenToFlowPosition(screen)) });
    };
    const travel = (way: "undo" | "redo") => {
      const label = store[way]();
      if (label) toast(`${way === "undo" ? "Undid" : "Redid"}: ${label}`, { id: "history" });
    };
    return [
      {
        id: "add",
        label: "Add a node",
        keys: ["a", "tab"],
        section: "Edit",
        isEnabled: canEdit,
        run: addAtMiddle,
      },
      {
        id: "undo",
        label: "Undo",
        keys: ["mod+z"],
        section: "Edit",
        isEnabled: canEdit,
        run: () => travel("undo"),
      },
      {
        id: "redo",
        label: "Redo",
        keys: ["mod+shift+z", "mod+y"],
        section: "Edit",
        isEnabled: canEdit,
        run: () => travel("redo"),
      },
      {
        id: "duplicate",
        label: "Duplicate",
        keys: ["mod+d"],
        section: "Edit",
        isEnabled: () => canEdit() && hasNodes(),
        run: () => duplicate(useSelection.getState().nodes),
      },
      {
        id: "cut",
        label: "Cut to the clipboard",
        keys: ["mod+x"],
        scope: "canvas",
        section: "Edit",
        isEnabled: () => canEdit() && hasNodes(),
        run: () => void cut(useSelection.getState().nodes),
      },
      {
        id: "delete",
        label: "Delete",
        keys: ["backspace", "delete"],
        scope: "canvas",
        section: "Edit",
        isEnabled: () => canEdit() && (hasNodes() || useSelection.getState().edges.length > 0),
        run: () => {
          const { nodes, edges } = useSelection.getState();
          store.dispatch(removeItems, { nodes, edges });
          clearSelection();
        },
      },
      {
        id: "arrange",
        label: "Arrange",
        keys: ["l"],
        section: "View",
        isEnabled: canEdit,
        run: arrange,
      },
    ];
  }, [store, screenToFlowPosition, flowStore, arrange, cut, duplicate]);
}
