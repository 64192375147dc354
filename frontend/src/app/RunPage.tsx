import { ReactFlowProvider } from "@xyflow/react";
import { ChevronLeft, Download } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Canvas } from "@/features/canvas/Canvas";
import { ChartsPanel } from "@/features/charts/ChartsPanel";
import { ChangedSince } from "@/features/runs/list/ChangedSince";
import { RunStateChip } from "@/features/runs/list/RunStateChip";
import { type Replay, ReplayBar, useReplay } from "@/features/runs/live/ReplayBar";
import { RunActions } from "@/features/runs/live/RunActions";
import { RunBanner, RunEditBar } from "@/features/runs/live/RunBanner";
import { ConnectionChip, RunProgress } from "@/features/runs/live/RunProgress";
import { useWatchedRun } from "@/features/runs/live/useWatchedRun";
import { RunResult } from "@/features/runs/report/RunResult";
import { useLoopChanges } from "@/features/runs/start/ForkChanges";
import { TimelinePanel } from "@/features/timeline/TimelinePanel";
import { download } from "@/lib/download";
import { LiveContext, RecordContext, useLive, useLiveRun, useReplayStep } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { isFinal } from "@/live/reducer";
import { OpenLoopProvider, useOpenLoop } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { clearSelection, useSelection } from "@/state/selection";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { Segmented } from "@/ui/Segmented";
import { Dock } from "./Dock";
import { EditorDialogs } from "./EditorDialogs";
import { ThemeMenu } from "./head/ThemeMenu";
import { PageHeader, Unopened } from "./PageShell";
import { Pane } from "./Pane";
import { Settings } from "./Settings";
import { useLoopCommands } from "./useActionKeys";
import { useWindow } from "./useWindow";

export function RunPage({ id }: { id: string }) {
  const { watched, error, retry } = useWatchedRun(id);
  if (!watched) {
    return (
      <Unopened title="Run" href="/runs" all="All runs" error={error} onRetry={retry}>
        Its folder may have been moved or deleted.
      </Unopened>
    );
  }
  return (
    <OpenLoopProvider value={watched.open}>
      <LiveContext value={watched.live}>
        <ReactFlowProvider>
          <Run onResumed={() => watched.connection.reopen()} />
        </ReactFlowProvider>
      </LiveContext>
    </OpenLoopProvider>
  );
}

function Run({ onResumed }: { onResumed: () => void }) {
  const name = useLive("status", (live) => live.run?.name ?? live.id, "");
  const replay = useReplay();
  const actions = useLoopCommands(name);
  return (
    <div className="flex h-full flex-col">
      <RunHeader name={name} onResumed={onResumed} replay={replay} />
      <ReplayProvider replay={replay}>
        {replay.isOn ? <ReplayBar replay={replay} /> : <RunProgress />}
        <RunBanner />
        <RunFloor />
      </ReplayProvider>
      <EditorDialogs actions={actions} />
    </div>
  );
}

function ReplayProvider({ replay, children }: { replay: Replay; children: ReactNode }) {
  const live = useLiveRun();
  const past = replay.player?.live ?? null;
  return (
    <LiveContext value={past ?? live}>
      <Recorded live={past ? live : null}>{children}</Recorded>
    </LiveContext>
  );
}

function Recorded({ live, children }: { live: LiveRun | null; children: ReactNode }) {
  const step = useLive("gauges", (run) => run.state.step ?? 0, 0);
  return <RecordContext value={live ? { live, step } : null}>{children}</RecordContext>;
}

interface RunHeaderProps {
  name: string;
  onResumed: () => void;
  replay: Replay;
}

function RunHeader({ name, onResumed, replay }: RunHeaderProps) {
  const { store } = useOpenLoop();
  const state = useLive("status", (live) => live.run?.state ?? live.state.state, null);
  const attempt = useLive(
    "status",
    (live) => Math.max(live.run?.attempt ?? 1, live.state.attempt),
    1,
  );
  return (
    <PageHeader>
      <span className="mx-1 h-5 w-px bg-line" />
      <h1
        className={classes(
          "max-w-80 truncate font-semibold text-sm",
          name.length > 8 ? "min-w-14" : "shrink-0",
        )}
        title={name}
      >
        {name}
      </h1>
      <RunStateChip state={state} />
      {attempt > 1 ? <span className="text-muted text-xs">attempt {attempt}</span> : null}
      <RunChanged />
      <ConnectionChip />
      <span className="flex-1" />
      <ReplaySwitch replay={replay} />
      <Button
        icon={<Download size={14} />}
        className="max-xl:hidden"
        onClick={() => download(`${name}.yaml`, store.getState().text)}
      >
        Export
      </Button>
      <RunActions onResumed={onResumed} />
      <ThemeMenu />
    </PageHeader>
  );
}

function RunChanged() {
  const run = useLive("status", (live) => live.run, null);
  const { data } = useLoopChanges(run?.id ?? "", run?.loop_id ?? null, run !== null);
  const count = data?.changes.length ?? 0;
  if (!run || count === 0) return null;
  return <ChangedSince run={run} label={`changed since: ${count}`} />;
}

function ReplaySwitch({ replay }: { replay: Replay }) {
  const steps = useLive("gauges", (live) => live.run?.step ?? live.state.step ?? 0, 0);
  if (steps === 0) return null;
  return (
    <Segmented
      label="Live or replay"
      value={replay.isOn ? "replay" : "live"}
      options={[
        { value: "live", label: "Live", title: "The run as it is now" },
        { value: "replay", label: "Replay", title: "The run as it was at an earlier moment" },
      ]}
      onChange={(value) => (value === "replay" ? replay.start() : replay.stop())}
    />
  );
}

const CHARTS_SHARE = 0.31;
const DOCK_SHARE = 0.25;
const MIN_CHARTS = 300;
const MIN_TIMELINE = 84;
const MIN_DOCK = 140;

function RunFloor() {
  const { runChartsWidth, runTimelineHeight, runDockHeight } = usePreferences();
  const width = useWindow(() => innerWidth);
  const height = useWindow(() => innerHeight);
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
          <Pane
            label="Work over time"
            sizeOf="Height of the timeline"
            grows="up"
            size={timeline}
            min={MIN_TIMELINE}
            max={400}
            onResize={(size) => setPreferences({ runTimelineHeight: size })}
          >
            <TimelinePanel />
          </Pane>
        </div>
        <Pane
          label={hasSelection ? "Settings" : "Charts of the run"}
          sizeOf="Width of the charts"
          grows="left"
          size={charts}
          min={MIN_CHARTS}
          max={Math.round(width * 0.6)}
          className="bg-canvas"
          onResize={(size) => setPreferences({ runChartsWidth: size })}
        >
          {hasSelection ? <RunSettings /> : <RunFigures />}
        </Pane>
      </div>
      <Pane
        label="Lower panel"
        sizeOf="Height of the lower panel"
        grows="up"
        size={dock}
        min={MIN_DOCK}
        max={720}
        className="bg-surface"
        onResize={(size) => setPreferences({ runDockHeight: size })}
      >
        <RunDock />
      </Pane>
    </>
  );
}

/** What came of a run that had ended when it was opened, or its charts. */
function RunFigures() {
  const isReplayed = useReplayStep() !== null;
  const run = useLive("status", ({ run }) => run, null);
  const [chosen, setChosen] = useState<"summary" | "charts" | null>(null);
  const [hadEnded, setHadEnded] = useState<boolean | null>(null);
  if (run && hadEnded === null) setHadEnded(isFinal(run.state));
  // Who watched the run end goes on with the charts.
  const shown = chosen ?? (hadEnded ? "summary" : "charts");
  if (isReplayed || !run || !isFinal(run.state) || run.started_at === null) return <ChartsPanel />;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="shrink-0 px-3 pt-2 pb-1">
        <Segmented
          label="Result or charts"
          value={shown}
          options={[
            { value: "summary", label: "Result" },
            { value: "charts", label: "Charts" },
          ]}
          onChange={setChosen}
        />
      </div>
      <div className="min-h-0 flex-1">
        {shown === "summary" ? <RunResult run={run.id} attempt={run.attempt} /> : <ChartsPanel />}
      </div>
    </div>
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
