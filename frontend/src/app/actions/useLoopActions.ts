import { useMemo } from "react";
import { useAbout } from "@/features/about/useAbout";
import { useExport } from "@/features/loops/useExport";
import { useRunControls } from "@/features/runs/start/useRunControls";
import type { Action } from "@/state/actions";
import { showDialog } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { setPreferences, startTour, usePalette } from "@/state/preferences";
import { panelsOf } from "../panels";

export function useLoopActions(): Action[] {
  const { sync } = useOpenLoop();
  const { exportYaml, exportPng } = useExport();
  const runControls = useRunControls();
  const about = useAbout();

  return useMemo(() => {
    return [
      {
        id: "palette",
        label: "Node list",
        keys: ["["],
        section: "View",
        run: () => usePalette.getState().toggle(),
      },
      {
        id: "save",
        label: "Save now",
        keys: ["mod+s"],
        scope: "always" as const,
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
        id: "exportPng",
        label: "Export as a picture, with the loop in it",
        keys: ["mod+shift+e"],
        section: "Loop",
        run: () => void exportPng(),
      },
      {
        id: "history",
        label: "History of this loop",
        keys: [],
        section: "Loop",
        run: () => showDialog("history"),
      },
      {
        id: "about",
        label: "About this loop",
        keys: [],
        section: "Help",
        isEnabled: () => about.preset !== null,
        run: () => about.open(),
      },
      {
        id: "newLoop",
        label: "New loop",
        keys: [],
        section: "Loop",
        run: () => showDialog("newLoop"),
      },
      {
        id: "gallery",
        label: "Open the gallery",
        keys: ["g"],
        section: "Loop",
        run: () => showDialog("gallery"),
      },
      { id: "tour", label: "Tour of the page", keys: [], section: "Help", run: startTour },
      ...panelsOf("loop").map(([dockTab, { label, keys }]) => ({
        id: dockTab,
        label,
        keys,
        section: "Go to",
        run: () => setPreferences({ isDockOpen: true, dockTab }),
      })),
    ];
  }, [sync, exportYaml, exportPng, runControls, about]);
}
