import { ReactFlowProvider } from "@xyflow/react";
import { Download } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { ApiError } from "@/api/client";
import { ChangedSince } from "@/features/runs/list/ChangedSince";
import { RunStateChip } from "@/features/runs/list/RunStateChip";
import { ConnectionChip } from "@/features/runs/live/ConnectionChip";
import { ReplayBar } from "@/features/runs/live/ReplayBar";
import { RunActions } from "@/features/runs/live/RunActions";
import { RunBanner } from "@/features/runs/live/RunBanner";
import { RunProgress } from "@/features/runs/live/RunProgress";
import { type Replay, useReplay } from "@/features/runs/live/useReplay";
import { useWatchedRun } from "@/features/runs/live/useWatchedRun";
import { useLoopChanges } from "@/features/runs/start/ForkChanges";
import { download } from "@/lib/download";
import { LiveContext, useLive, useLiveRun } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { RecordContext } from "@/live/recordContext";
import { OpenLoopProvider, useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { Segmented } from "@/ui/Segmented";
import { Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { useEditorActions } from "./actions/useEditorActions";
import { EditorDialogs } from "./EditorDialogs";
import { Brand } from "./head/Brand";
import { PageNav } from "./head/PageNav";
import { ThemeMenu } from "./head/ThemeMenu";
import { NotFound } from "./PageShell";
import { RunFloor } from "./RunFloor";
import { useActionKeys } from "./useActionKeys";

export function RunPage({ id }: { id: string }) {
  const { watched, error, retry } = useWatchedRun(id);
  if (error instanceof ApiError && error.status === 404) {
    return (
      <NotFound title="Run" href="/runs" all="All runs">
        Its folder may have been moved or deleted.
      </NotFound>
    );
  }
  if (error && !watched)
    return <Failed title="The run could not be opened" error={error} onRetry={retry} />;
  if (!watched) return <AppSkeleton />;
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
  const actions = useEditorActions();
  useActionKeys(actions);
  useEffect(() => {
    document.title = `${name} · coloop`;
  }, [name]);

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

/** Below it the run is as it was at the moment that the replay shows. */
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
    <header className="flex h-12 shrink-0 items-center gap-2 border-line border-b bg-surface px-3">
      <Brand />
      <PageNav />
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
    </header>
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
      label="Moment"
      value={replay.isOn ? "replay" : "live"}
      options={[
        { value: "live", label: "Live", title: "The run as it is now" },
        { value: "replay", label: "Replay", title: "The run as it was at an earlier moment" },
      ]}
      onChange={(value) => (value === "replay" ? replay.start() : replay.stop())}
    />
  );
}
