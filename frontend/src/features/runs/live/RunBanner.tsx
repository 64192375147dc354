import { CircleX } from "lucide-react";
import { toast } from "sonner";
import { editRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { runAgain, useStartRun } from "@/features/runs/start/TrustDialog";
import { formatPlural } from "@/lib/format";
import { useLiveRun, useLiveVersion } from "@/live/hooks";
import { useOpenLoop } from "@/state/document/context";
import { useRunEdits } from "@/state/runEdits";
import { showField } from "@/state/selection";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";

/** The code of a run whose Ray did not start; one process needs none. */
const NO_RAY = "run.ray_not_started";

export function RunBanner() {
  const live = useLiveRun();
  useLiveVersion("status");
  if (!live) return null;
  const { run } = live;
  const state = run?.state ?? live.state.state;
  const error = run?.error ?? live.state.error;
  if ((state === "running" || state === "stopping") && run?.message) {
    return (
      <p
        role="status"
        className="border-line border-b bg-warning-soft px-4 py-2 text-sm text-warning"
      >
        {run.message}
      </p>
    );
  }
  if (state !== "failed") return null;
  return (
    <div
      role="alert"
      className="flex max-h-48 shrink-0 gap-3 overflow-y-auto border-line border-b bg-error-soft px-4 py-2 text-sm"
    >
      <CircleX size={16} className="mt-0.5 shrink-0 text-error" aria-hidden="true" />
      <div className="min-w-0 flex-1">
        <p className="font-medium">
          {error?.message ?? run?.message ?? live.state.message ?? "The run failed."}
        </p>
        {error?.hint ? <p className="text-muted">{error.hint}</p> : null}
        {error?.traceback ? (
          <details className="mt-1 text-xs">
            <summary className="cursor-pointer text-muted">
              {error.code === NO_RAY ? "The end of Ray's log" : "Traceback"}
            </summary>
            <pre className="mt-1 overflow-x-auto rounded-1 bg-surface p-2 font-mono">
              {error.traceback}
            </pre>
          </details>
        ) : null}
      </div>
      {run && error?.code === NO_RAY ? <InOneProcess run={run} /> : null}
      {error?.node ? (
        <Button size="small" onClick={() => showField(error.node)}>
          Show {error.node}
        </Button>
      ) : null}
    </div>
  );
}

function InOneProcess({ run }: { run: RunSummary }) {
  const { isBusy, start } = useStartRun();
  return (
    <Button
      size="small"
      disabled={isBusy}
      onClick={() => start(() => runAgain(run, { in_one_process: true }))}
    >
      Run in one process
    </Button>
  );
}

export function RunEditBar() {
  const { runId } = useOpenLoop();
  const { changes, send, discard } = useRunEdits();
  const { isBusy, attempt } = useAttempt();
  const paths = Object.keys(changes);
  if (!runId || paths.length === 0) return null;

  const apply = () =>
    attempt(async () => {
      await editRun(runId, changes);
      send(changes);
      toast.success("The change takes effect with the next step.");
    }, "The run rejected the change.");
  return (
    <div className="absolute bottom-3 left-1/2 z-10 flex -translate-x-1/2 items-center gap-3 rounded-3 border border-line bg-raised px-4 py-2 text-sm shadow-3">
      <span title={paths.join("\n")}>
        {formatPlural(paths.length, "change")} not sent to the run
      </span>
      <Button size="small" disabled={isBusy} onClick={discard}>
        Discard
      </Button>
      <Button size="small" look="primary" disabled={isBusy} onClick={() => void apply()}>
        Apply to the run
      </Button>
    </div>
  );
}
