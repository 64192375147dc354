import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useMemo } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { removeItems } from "@/document/commands/removeItems";
import { useOpenLoop } from "@/document/context";
import { edgeKeys } from "@/document/edges";
import { FIT_SOFTLY } from "@/features/canvas/fit";
import { useArrange } from "@/features/canvas/useArrange";
import { useClipboard } from "@/features/canvas/useClipboard";
import { useExport } from "@/features/loops/useExport";
import { useAddSearch } from "@/features/palette/addSearch";
import { useRunControls } from "@/features/runs/useRunControls";
import { useDialogs } from "@/session/dialogs";
import { type DockTab, usePreferences } from "@/session/preferences";
import { useSelection } from "@/session/selection";
import type { Action } from "./actions";

/** Every command of the editor, for keys, palette and help. */
export function useEditorActions(): Action[] {
  const { store, sync, runId } = useOpenLoop();
  const { zoomIn, zoomOut, fitView, screenToFlowPosition } = useReactFlow();
  const flowStore = useStoreApi();
  const arrange = useArrange();
  const { copy, duplicate } = useClipboard();
  const exportYaml = useExport();
  const runControls = useRunControls();
  const [, navigate] = useLocation();

  return useMemo(() => {
    const canEdit = () => !store.getState().isReadonly;
    const hasNodes = () => useSelection.getState().nodes.length > 0;
    const { set } = usePreferences.getState();
    const showTab = (dockTab: DockTab) => set({ isDockOpen: true, dockTab });
    const addAtMiddle = () => {
      const box = flowStore.getState().domNode?.getBoundingClientRect();
      const screen = {
        x: (box?.left ?? 0) + (box?.width ?? 0) / 2 - 144,
        y: (box?.top ?? 0) + (box?.height ?? 0) / 3,
      };
      useAddSearch.getState().show({ screen, flow: screenToFlowPosition(screen) });
    };
    const travel = (way: "undo" | "redo") => {
      const label = store.getState()[way]();
      if (label) toast(`${way === "undo" ? "Undid" : "Redid"}: ${label}`, { id: "history" });
    };
    const view: Action[] = [
      {
        id: "fit",
        label: "Show everything",
        keys: ["1"],
        section: "View",
        run: () => void fitView(FIT_SOFTLY),
      },
      {
        id: "zoomIn",
        label: "Zoom in",
        keys: ["+", "="],
        section: "View",
        run: () => void zoomIn({ duration: 120 }),
      },
      {
        id: "zoomOut",
        label: "Zoom out",
        keys: ["-"],
        section: "View",
        run: () => void zoomOut({ duration: 120 }),
      },
      {
        id: "overview",
        label: "Overview on or off",
        keys: ["m"],
        section: "View",
        run: () => set({ hasMinimap: !usePreferences.getState().hasMinimap }),
      },
      {
        id: "inspector",
        label: "Settings panel on or off",
        keys: ["]"],
        section: "View",
        run: () => set({ isInspectorOpen: !usePreferences.getState().isInspectorOpen }),
      },
      {
        id: "dock",
        label: "Lower panel on or off",
        keys: ["j"],
        section: "View",
        run: () => set({ isDockOpen: !usePreferences.getState().isDockOpen }),
      },
      {
        id: "commands",
        label: "All commands",
        keys: ["mod+k"],
        section: "Help",
        run: () => useDialogs.getState().show("commands"),
      },
      {
        id: "shortcuts",
        label: "Keyboard shortcuts",
        keys: ["?"],
        section: "Help",
        run: () => useDialogs.getState().show("shortcuts"),
      },
      {
        id: "selectAll",
        label: "Select everything",
        keys: ["mod+a"],
        section: "Edit",
        run: () => selectAll(),
      },
      {
        id: "copy",
        label: "Copy",
        keys: ["mod+c"],
        section: "Edit",
        isEnabled: () => hasNodes() && !hasTextSelection(),
        run: () => copy(useSelection.getState().nodes),
      },
      {
        id: "clear",
        label: "Clear the selection",
        keys: ["escape"],
        section: "Edit",
        run: () => useSelection.getState().clear(),
      },
      { id: "runs", label: "Go to runs", keys: [], section: "Go to", run: () => navigate("/runs") },
      {
        id: "loops",
        label: "Go to loops",
        keys: [],
        section: "Go to",
        run: () => navigate("/loops"),
      },
    ];
    const selectAll = () => {
      const { document } = store.getState();
      useSelection
        .getState()
        .select({ nodes: Object.keys(document.nodes), edges: edgeKeys(document.edges) });
    };
    if (runId) return view;
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
        id: "delete",
        label: "Delete",
        keys: ["backspace", "delete"],
        section: "Edit",
        isEnabled: () => canEdit() && (hasNodes() || useSelection.getState().edges.length > 0),
        run: () => {
          const { nodes, edges } = useSelection.getState();
          store.getState().dispatch(removeItems, { nodes, edges });
          useSelection.getState().clear();
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
      {
        id: "palette",
        label: "Node list on or off",
        keys: ["["],
        section: "View",
        run: () => set({ isPaletteOpen: !usePreferences.getState().isPaletteOpen }),
      },
      {
        id: "save",
        label: "Save now",
        keys: ["mod+s"],
        section: "Loop",
        run: () => void sync?.flush(),
      },
      {
        id: "run",
        label: "Run",
        keys: ["mod+enter"],
        section: "Loop",
        run: () => runControls.start(),
      },
      {
        id: "export",
        label: "Export YAML",
        keys: ["mod+e"],
        section: "Loop",
        run: () => void exportYaml(),
      },
      {
        id: "gallery",
        label: "Open the gallery",
        keys: ["g"],
        section: "Loop",
        run: () => useDialogs.getState().show("gallery"),
      },
      {
        id: "schedule",
        label: "Schedule",
        keys: [],
        section: "Go to",
        run: () => showTab("schedule"),
      },
      {
        id: "problems",
        label: "Problems",
        keys: ["mod+m"],
        section: "Go to",
        run: () => showTab("problems"),
      },
      {
        id: "memory",
        label: "Memory and time",
        keys: [],
        section: "Go to",
        run: () => showTab("memory"),
      },
      { id: "yaml", label: "YAML", keys: ["y"], section: "Go to", run: () => showTab("yaml") },
      ...view,
    ];
  }, [
    store,
    sync,
    runId,
    zoomIn,
    zoomOut,
    fitView,
    screenToFlowPosition,
    flowStore,
    arrange,
    copy,
    duplicate,
    exportYaml,
    runControls,
    navigate,
  ]);
}

function hasTextSelection(): boolean {
  return (window.getSelection()?.toString() ?? "") !== "";
}
