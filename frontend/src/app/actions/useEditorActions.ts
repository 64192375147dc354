import { useMemo } from "react";
import { useOpenLoop } from "@/document/context";
import type { Action } from "@/session/actions";
import { useEditActions } from "./useEditActions";
import { useFocusActions } from "./useFocusActions";
import { useGraphActions } from "./useGraphActions";
import { useLayoutActions } from "./useLayoutActions";
import { useLoopActions } from "./useLoopActions";
import { usePageActions } from "./usePageActions";
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
