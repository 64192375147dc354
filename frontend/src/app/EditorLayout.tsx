import { PanelBottomOpen, PanelRightOpen, X } from "lucide-react";
import { lazy, Suspense, useEffect } from "react";
import { useAbout } from "@/features/about/useAbout";
import { Canvas } from "@/features/canvas/Canvas";
import { PaletteRail } from "@/features/palette/PaletteRail";
import { ScheduleStrip } from "@/features/schedule/ScheduleStrip";
import { useAddSearch } from "@/state/dialogs";
import { useDocument, useOpenLoop, useSync } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { useSelection } from "@/state/selection";
import type { SyncState } from "@/state/sync/state";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Dock } from "./Dock";
import { Pane } from "./Pane";
import { Settings, SettingsOutline } from "./Settings";
import { useSettingsWidth } from "./useWindow";

const hardwareBar = () => import("@/features/hardware/HardwareBar");
const HardwareBar = lazy(() => hardwareBar().then((module) => ({ default: module.HardwareBar })));
const HardwareLayer = lazy(() =>
  hardwareBar().then((module) => ({ default: module.HardwareLayer })),
);

const RunStrip = lazy(() =>
  import("@/features/runs/list/RunStrip").then((module) => ({ default: module.RunStrip })),
);

const AboutLoop = lazy(() =>
  import("@/features/about/AboutLoop").then((module) => ({ default: module.AboutLoop })),
);
const loadSearch = () => import("@/features/palette/AddSearch");
const AddSearch = lazy(() => loadSearch().then((module) => ({ default: module.AddSearch })));
/** Milliseconds after which the search is loaded, so that it opens at once. */
const AFTER = 1000;

const DOCK_HEIGHT = 204;

export function EditorLayout() {
  const name = useDocument((state) => state.document.name);
  const preferences = usePreferences();
  const { isInspectorOpen, isDockOpen, dockHeights, dockTab } = preferences;
  const dockHeight = dockHeights[dockTab] ?? DOCK_HEIGHT;
  const showsSchedule = isDockOpen && dockTab === "schedule";
  return (
    <>
      <div className="relative flex min-h-0 flex-1">
        <Suspense>
          <HardwareLayer />
        </Suspense>
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
                  onClick={() => setPreferences({ isDockOpen: true })}
                  icon={<PanelBottomOpen size={16} />}
                />
              )}
              {isInspectorOpen ? null : (
                <IconButton
                  label="Show the settings"
                  keys="]"
                  className="border border-line bg-surface"
                  onClick={() => setPreferences({ isInspectorOpen: true })}
                  icon={<PanelRightOpen size={16} />}
                />
              )}
            </div>
          </main>
          <Suspense>
            <RunStrip />
          </Suspense>
          {isDockOpen ? (
            <Pane
              label="Lower panel"
              sizeOf="Height of the lower panel"
              grows="up"
              size={dockHeight}
              min={120}
              max={640}
              className="bg-surface"
              onResize={(size) =>
                setPreferences({ dockHeights: { ...dockHeights, [dockTab]: size } })
              }
            >
              <EditorDock />
            </Pane>
          ) : null}
        </div>
        {isInspectorOpen ? <SettingsPane /> : null}
      </div>
      {showsSchedule ? null : <ScheduleStrip />}
      <Suspense fallback={<div className="h-[78px] shrink-0 border-line border-t bg-surface" />}>
        <HardwareBar />
      </Suspense>
    </>
  );
}

function EditorDock() {
  const tab = usePreferences((state) => state.dockTab);
  return (
    <Dock
      page="loop"
      label="Panels"
      value={tab}
      onChange={(dockTab) => setPreferences({ dockTab })}
    >
      <IconButton
        label="Hide the panel"
        keys="J"
        size="small"
        onClick={() => setPreferences({ isDockOpen: false })}
        icon={<X size={14} />}
      />
    </Dock>
  );
}

function SettingsPane() {
  const width = usePreferences((state) => state.inspectorWidth);
  const shown = useSettingsWidth();
  return (
    <Pane
      label="Settings"
      sizeOf="Width of the settings"
      grows="left"
      size={width}
      shown={shown}
      min={280}
      max={560}
      className="flex flex-col"
      onResize={(size) => setPreferences({ inspectorWidth: size })}
    >
      <Inside />
    </Pane>
  );
}

function Inside() {
  const { isOpen, isKnown } = useAbout();
  const isLoop = useSelection(
    ({ nodes, edges, phase, entry }) => nodes.length + edges.length === 0 && !phase && !entry,
  );
  if (isLoop && !isKnown)
    return (
      <div key="outline" className="min-h-0 flex-1">
        <SettingsOutline />
      </div>
    );
  return (
    <>
      <Suspense>{isOpen && isLoop ? <AboutLoop /> : null}</Suspense>
      <div className="min-h-0 flex-1">
        <Settings />
      </div>
    </>
  );
}

function AddSearchLayer() {
  const request = useAddSearch((state) => state.request);
  useEffect(() => {
    const timer = setTimeout(() => void loadSearch(), AFTER);
    return () => clearTimeout(timer);
  }, []);
  if (!request) return null;
  return (
    <Suspense>
      <AddSearch key={`${request.screen.x} ${request.screen.y}`} request={request} />
    </Suspense>
  );
}

export function BrokenTextBanner() {
  const { sync } = useOpenLoop();
  const reason = useSync(lockReason);
  if (reason === null) return null;
  return (
    <div className="pointer-events-none absolute inset-0 bg-[color-mix(in_oklab,var(--canvas)_45%,transparent)]">
      <div
        role="status"
        className="pointer-events-auto mx-auto mt-3 flex w-fit items-center gap-3 rounded-2 border border-line bg-hover px-3 py-2 text-sm shadow-2"
      >
        {reason} The graph shows the last valid state.
        <Button size="small" onClick={() => setPreferences({ isDockOpen: true, dockTab: "yaml" })}>
          Show the text
        </Button>
        <Button size="small" onClick={() => sync?.discardText()}>
          Discard
        </Button>
      </div>
    </div>
  );
}

function lockReason({ brokenText, typedText, checkStatus }: SyncState): string | null {
  if (brokenText !== null) return "The text has errors.";
  return typedText !== null && checkStatus === "offline"
    ? "The text has not been parsed yet."
    : null;
}
