import { ReactFlowProvider } from "@xyflow/react";
import { useEffect } from "react";
import { Link } from "wouter";
import { ApiError } from "@/api/client";
import { OpenLoopProvider } from "@/document/context";
import { Canvas } from "@/features/canvas/Canvas";
import { RunBanner } from "@/features/runs/RunBanner";
import { RunEditBar } from "@/features/runs/RunEditBar";
import { RunProgress } from "@/features/runs/RunProgress";
import { useWatchedRun } from "@/features/runs/useWatchedRun";
import { LiveContext, useLive } from "@/live/hooks";
import { usePreferences } from "@/session/preferences";
import { useSelection } from "@/session/selection";
import { Resizer } from "@/ui/Resizer";
import { Empty, Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { useEditorActions } from "./actions/useEditorActions";
import { Commands } from "./Commands";
import { PageShell } from "./PageShell";
import { RunDock } from "./RunDock";
import { RunHeader } from "./RunHeader";
import { SettingsPane } from "./SettingsPane";
import { ShortcutSheet } from "./ShortcutSheet";
import { useActionKeys } from "./useActionKeys";

/** A run on the graph that it came from: live while it goes on, replayed afterwards. */
export function RunPage({ id }: { id: string }) {
  const { watched, error, retry } = useWatchedRun(id);
  if (error instanceof ApiError && error.status === 404) {
    return (
      <PageShell title="Run">
        <Empty
          title="There is no such run"
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
  const dockHeight = usePreferences((state) => state.runDockHeight);
  const set = usePreferences((state) => state.set);
  const hasSelection = useSelection(
    (state) =>
      state.nodes.length + state.edges.length > 0 || state.phase !== null || state.entry !== null,
  );
  const actions = useEditorActions();
  useActionKeys(actions);
  useEffect(() => {
    document.title = `${name} · coloop`;
  }, [name]);

  return (
    <div className="flex h-full flex-col">
      <RunHeader name={name} onResumed={onResumed} />
      <RunProgress />
      <RunBanner />
      <div className="flex min-h-0 flex-1">
        <main className="relative min-w-0 flex-1">
          <Canvas />
          <RunEditBar />
        </main>
        {hasSelection ? <SettingsPane /> : null}
      </div>
      <section
        aria-label="Lower panel"
        className="relative max-h-[70vh] shrink-0 border-line border-t bg-surface"
        style={{ height: dockHeight }}
      >
        <Resizer
          label="Height of the lower panel"
          grows="up"
          size={dockHeight}
          min={160}
          max={720}
          onResize={(size) => set({ runDockHeight: size })}
        />
        <RunDock />
      </section>
      <ShortcutSheet actions={actions} />
      <Commands actions={actions} />
    </div>
  );
}
