import { ChevronLeft } from "lucide-react";
import { useSyncExternalStore } from "react";
import { Canvas } from "@/features/canvas/Canvas";
import { ChartsPanel } from "@/features/charts/ChartsPanel";
import { RunEditBar } from "@/features/runs/live/RunEditBar";
import { TimelinePanel } from "@/features/timeline/TimelinePanel";
import { setPreferences, usePreferences } from "@/state/preferences";
import { clearSelection, useSelection } from "@/state/selection";
import { Button } from "@/ui/Button";
import { Resizer } from "@/ui/Resizer";
import { Dock } from "./Dock";
import { Settings } from "./Settings";

const CHARTS_SHARE = 0.31;
const DOCK_SHARE = 0.25;
const MIN_CHARTS = 300;
const MIN_TIMELINE = 84;
const MIN_DOCK = 140;

export function RunFloor() {
  const { runChartsWidth, runTimelineHeight, runDockHeight } = usePreferences();
  const { width, height } = useWindowSize();
  const hasSelection = useSelection(
    (state) =>
      state.nodes.length + state.edges.length > 0 || state.phase !== null || state.entry !== null,
  );
  const charts = Math.min(
    Math.max(MIN_CHARTS, runChartsWidth || Math.round(width * CHARTS_SHARE)),
    Math.round(width * 0.6),
  );
  const dock = Math.min(runDockHeight || Math.round(height * DOCK_SHARE), Math.round(height * 0.4));
  const timeline = Math.min(runTimelineHeight, Math.round(height * 0.3));
  return (
    <>
      <div className="flex min-h-0 flex-1">
        <div className="flex min-w-0 flex-1 flex-col">
          <main className="relative min-h-0 flex-1">
            <Canvas />
            <RunEditBar />
          </main>
          <section
            aria-label="Work over time"
            className="relative shrink-0 border-line border-t"
            style={{ height: timeline }}
          >
            <Resizer
              label="Height of the timeline"
              grows="up"
              size={timeline}
              min={MIN_TIMELINE}
              max={400}
              onResize={(size) => setPreferences({ runTimelineHeight: size })}
            />
            <TimelinePanel />
          </section>
        </div>
        <aside
          aria-label={hasSelection ? "Settings" : "Charts of the run"}
          className="relative shrink-0 border-line border-l bg-canvas"
          style={{ width: charts }}
        >
          <Resizer
            label="Width of the charts"
            grows="left"
            size={charts}
            min={MIN_CHARTS}
            max={Math.round(width * 0.6)}
            onResize={(size) => setPreferences({ runChartsWidth: size })}
          />
          {hasSelection ? <RunSettings /> : <ChartsPanel />}
        </aside>
      </div>
      <section
        aria-label="Lower panel"
        className="relative shrink-0 border-line border-t bg-surface"
        style={{ height: dock }}
      >
        <Resizer
          label="Height of the lower panel"
          grows="up"
          size={dock}
          min={MIN_DOCK}
          max={720}
          onResize={(size) => setPreferences({ runDockHeight: size })}
        />
        <RunDock />
      </section>
    </>
  );
}

function RunDock() {
  const tab = usePreferences((state) => state.runTab);
  return (
    <Dock
      page="run"
      label="Panels of the run"
      value={tab}
      onChange={(runTab) => setPreferences({ runTab })}
    />
  );
}

let size = { width: innerWidth, height: innerHeight };

function useWindowSize(): { width: number; height: number } {
  return useSyncExternalStore(
    (listener) => {
      addEventListener("resize", listener);
      return () => removeEventListener("resize", listener);
    },
    () => {
      if (size.width !== innerWidth || size.height !== innerHeight) {
        size = { width: innerWidth, height: innerHeight };
      }
      return size;
    },
  );
}

function RunSettings() {
  return (
    <div className="flex h-full min-h-0 flex-col bg-surface">
      <div className="shrink-0 border-line border-b p-1.5">
        <Button
          size="small"
          look="quiet"
          icon={<ChevronLeft size={14} />}
          onClick={() => clearSelection()}
        >
          Charts
        </Button>
      </div>
      <div className="min-h-0 flex-1">
        <Settings />
      </div>
    </div>
  );
}
