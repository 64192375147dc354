import { ReactFlowProvider } from "@xyflow/react";
import { type ReactNode, useEffect } from "react";
import { Link } from "wouter";
import { ApiError } from "@/api/client";
import { ReplayBar } from "@/features/runs/live/ReplayBar";
import { RunBanner } from "@/features/runs/live/RunBanner";
import { RunProgress } from "@/features/runs/live/RunProgress";
import { type Replay, useReplay } from "@/features/runs/live/useReplay";
import { useWatchedRun } from "@/features/runs/live/useWatchedRun";
import { LiveContext, useLive, useLiveRun } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { RecordContext } from "@/live/recordContext";
import { OpenLoopProvider } from "@/state/document/context";
import { Empty, Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { useEditorActions } from "./actions/useEditorActions";
import { EditorDialogs } from "./EditorDialogs";
import { PageShell } from "./PageShell";
import { RunFloor } from "./RunFloor";
import { RunHeader } from "./RunHeader";
import { useActionKeys } from "./useActionKeys";

/** A run on the graph that it came from: live while it goes on, replayed afterwards. */
export function RunPage({ id }: { id: string }) {
  const { watched, error, retry } = useWatchedRun(id);
  if (error instanceof ApiError && error.status === 404) {
    return (
      <PageShell title="Run">
        <Empty
          title="Run not found"
          action={
            <Link href="/runs" className="text-accent-text underline">
              All runs
            </Link>
          }
        >
          Its folder may have been moved or deleted.
        </Empty>
      </PageShell>
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
