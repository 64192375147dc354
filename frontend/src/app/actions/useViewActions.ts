import { useReactFlow } from "@xyflow/react";
import { useMemo } from "react";
import type { Action } from "@/state/actions";
import { useViewport } from "@/state/canvas";
import { usePreferences } from "@/state/preferences";

/** What is seen of a graph, and which panels are open. */
export function useViewActions(): Action[] {
  const { zoomIn, zoomOut } = useReactFlow();
  return useMemo(() => {
    const { set } = usePreferences.getState();
    return [
      {
        id: "fit",
        label: "Show everything",
        keys: ["1"],
        section: "View",
        run: () => useViewport.getState().fit(),
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
    ];
  }, [zoomIn, zoomOut]);
}
