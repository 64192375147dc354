import { PanelBottomOpen, PanelRightOpen, X } from "lucide-react";
import { lazy, Suspense } from "react";
import { useDocument } from "@/document/context";
import { Canvas } from "@/features/canvas/Canvas";
import { HardwareBar } from "@/features/hardware/HardwareBar";
import { HardwareLayer } from "@/features/hardware/HardwareLayer";
import { AddSearchLayer } from "@/features/palette/AddSearchLayer";
import { PaletteRail } from "@/features/palette/PaletteRail";
import { ScheduleStrip } from "@/features/schedule/ScheduleStrip";
import { BrokenTextBanner } from "@/features/yaml/BrokenTextBanner";
import { usePreferences } from "@/session/preferences";
import { IconButton } from "@/ui/IconButton";
import { Resizer } from "@/ui/Resizer";
import { Dock } from "./Dock";
import { SettingsPane } from "./SettingsPane";

const LoopRuns = lazy(() => import("./LoopRuns").then((module) => ({ default: module.LoopRuns })));

const DOCK_HEIGHT = 204;

/** Nodes on the left, graph in the middle, settings on the right, panels below. */
export function EditorLayout() {
  const name = useDocument((state) => state.document.name);
  const preferences = usePreferences();
  const { isInspectorOpen, isDockOpen, dockHeights, dockTab, set } = preferences;
  const dockHeight = dockHeights[dockTab] ?? DOCK_HEIGHT;
  // The panel shows it in full.
  const showsSchedule = isDockOpen && dockTab === "schedule";
  return (
    <>
      <div className="relative flex min-h-0 flex-1">
        <HardwareLayer />
        <PaletteRail />
        <div className="flex min-w-0 flex-1 flex-col">
          <main className="relative min-h-0 flex-1">
            <h1 className="sr-only">{name}</h1>
            <Canvas />
            <AddSearchLayer />
            <BrokenTextBanner />
            <div data-over-graph="" className="absolute top-2 right-2 flex gap-1">
              {isDockOpen ? null : (
                <IconButton
                  label="Show the lower panel"
                  keys="J"
                  className="border border-line bg-surface"
                  onClick={() => set({ isDockOpen: true })}
                >
                  <PanelBottomOpen size={16} />
                </IconButton>
              )}
              {isInspectorOpen ? null : (
                <IconButton
                  label="Show the settings"
                  keys="]"
                  className="border border-line bg-surface"
                  onClick={() => set({ isInspectorOpen: true })}
                >
                  <PanelRightOpen size={16} />
                </IconButton>
              )}
            </div>
          </main>
          <Suspense>
            <LoopRuns />
          </Suspense>
          {isDockOpen ? (
            <section
              aria-label="Lower panel"
              className="relative shrink-0 border-line border-t bg-surface"
              style={{ height: dockHeight }}
            >
              <Resizer
                label="Height of the lower panel"
                grows="up"
                size={dockHeight}
                min={120}
                max={640}
                onResize={(size) => set({ dockHeights: { ...dockHeights, [dockTab]: size } })}
              />
              <EditorDock />
            </section>
          ) : null}
        </div>
        {isInspectorOpen ? <SettingsPane /> : null}
      </div>
      {showsSchedule ? null : <ScheduleStrip />}
      <HardwareBar />
    </>
  );
}

/** The panels of the composer; they can be put away. */
function EditorDock() {
  const tab = usePreferences((state) => state.dockTab);
  const set = usePreferences((state) => state.set);
  return (
    <Dock page="loop" label="Panels" value={tab} onChange={(dockTab) => set({ dockTab })}>
      <IconButton
        label="Hide the panel"
        keys="J"
        size="small"
        onClick={() => set({ isDockOpen: false })}
      >
        <X size={14} />
      </IconButton>
    </Dock>
  );
}
