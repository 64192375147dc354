import { useMemo } from "react";
import { useLocation } from "wouter";
import type { Action } from "@/state/actions";
import { useDialogs } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { useEditActions } from "./useEditActions";
import { useFocusActions } from "./useFocusActions";
import { useGraphActions } from "./useGraphActions";
import { useLayoutActions } from "./useLayoutActions";
import { useLoopActions } from "./useLoopActions";
import { useSelectionActions } from "./useSelectionActions";
import { useViewActions } from "./useViewActions";

/** Every command of the page with a graph, for keys, palette and help. A run's graph is only looked at. */
export function useEditorActions(): Action[] {
  const { runId } = useOpenLoop();
  const edit = useEditActions();
  const focus = useFocusActions();
  const graph = useGraphActions();
  const layout = useLayoutActions();
  const loop = useLoopActions();
  const view = useViewActions();
  const selection = useSelectionActions();
  const page = usePageActions();
  return useMemo(
    () => [
      ...(runId ? [] : [...edit, ...focus, ...graph, ...layout, ...loop]),
      ...view,
      ...selection,
      ...page,
    ],
    [runId, edit, focus, graph, layout, loop, view, selection, page],
  );
}

/** Help, and the way to other pages. */
function usePageActions(): Action[] {
  const [, navigate] = useLocation();
  return useMemo(
    (): Action[] => [
      {
        id: "commands",
        label: "All commands",
        keys: ["mod+k"],
        scope: "always",
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
      { id: "runs", label: "Go to runs", keys: [], section: "Go to", run: () => navigate("/runs") },
      {
        id: "loops",
        label: "Go to loops",
        keys: [],
        section: "Go to",
        run: () => navigate("/loops"),
      },
    ],
    [navigate],
  );
}
