import {
  ChartNoAxesColumn,
  ChevronDown,
  Dices,
  FlaskConical,
  GitFork,
  LoaderCircle,
  Pencil,
  RotateCcw,
  RotateCw,
  Square,
} from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { createLoop, stopRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { ForkDialog } from "@/features/runs/start/ForkDialog";
import { resumeFrom, runAgain, useStartRun } from "@/features/runs/start/TrustDialog";
import { useLiveRun, useLiveVersion } from "@/live/hooks";
import { isFinal } from "@/live/reducer";
import { useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Menu, MenuItem } from "@/ui/Menu";

export function RunActions({ onResumed }: { onResumed: () => void }) {
  const live = useLiveRun();
  useLiveVersion("status");
  const { store } = useOpenLoop();
  const { isBusy, attempt, start } = useStartRun();
  const [isForking, setForking] = useState(false);
  const [, navigate] = useLocation();
  if (!live?.run) return null;
  const { run } = live;
  const step = run.step ?? live.state.step ?? 0;
  const isOver = isFinal(run.state);
  const isStopping = run.state === "stopping";
  const hasControls = run.state === "finished" && !run.tags.includes(CONTROL_TAG);
  const label = hasControls ? "max-xl:sr-only" : ""; // where all buttons would be wider than the window

  const edit = async () => {
    const loopId = run.loop_id ?? (await createLoop({ yaml: store.getState().text })).id;
    navigate(`/loops/${loopId}`);
  };
  const resume = async () => {
    const resumed = await resumeFrom(run);
    if (resumed === null) return;
    live.setRun(resumed);
    onResumed();
  };
  return (
    <>
      <Button
        icon={<Pencil size={14} />}
        title={EDIT[run.loop_id ? "saved" : "copy"]}
        onClick={() => void attempt(edit)}
      >
        <span className={label}>{EDIT[run.loop_id ? "saved" : "copy"]}</span>
      </Button>
      {step > 0 ? (
        <Button icon={<GitFork size={14} />} title="Fork" onClick={() => setForking(true)}>
          <span className={label}>Fork</span>
        </Button>
      ) : null}
      <ForkDialog
        run={run}
        best={live.state.checkpoints.findLast((checkpoint) => checkpoint.isBest)?.step}
        isOpen={isForking}
        onClose={() => setForking(false)}
      />
      {isOver && run.state !== "finished" && step > 0 ? (
        <Button
          icon={<RotateCw size={14} />}
          disabled={isBusy}
          onClick={() => void attempt(resume)}
        >
          Resume
        </Button>
      ) : null}
      {hasControls ? (
        <Button
          icon={<FlaskConical size={14} />}
          title="Run the same loop without the part that is said to help, and compare"
          onClick={() => navigate(`/runs/${run.id}/controls`)}
        >
          <span className={label}>Run a control</span>
        </Button>
      ) : null}
      {isOver ? (
        <AfterRun run={run} isBusy={isBusy} start={start} />
      ) : (
        <Button
          look="danger"
          disabled={isBusy || isStopping}
          icon={
            isStopping ? (
              <LoaderCircle size={14} className="animate-spin" />
            ) : (
              <Square size={12} fill="currentColor" />
            )
          }
          onClick={() => void attempt(async () => live.setRun(await stopRun(run.id)))}
        >
          {isStopping ? "Stopping" : "Stop"}
        </Button>
      )}
    </>
  );
}

const CONTROL_TAG = "control";
const EDIT = { saved: "Edit loop", copy: "Edit as a loop" };
const SEEDS = 9999;

interface AfterRunProps extends Pick<ReturnType<typeof useStartRun>, "isBusy" | "start"> {
  run: RunSummary;
}

function AfterRun({ run, isBusy, start }: AfterRunProps) {
  const { store } = useOpenLoop();
  const [, navigate] = useLocation();
  const [seed] = useState(() => 1 + Math.floor(Math.random() * SEEDS));
  const again = (change: { seed?: number }) =>
    start(() => runAgain(run, { yaml: store.getState().text, ...change }));
  return (
    <>
      {run.state !== "failed" || run.started_at !== null ? (
        <Button
          icon={<ChartNoAxesColumn size={14} />}
          onClick={() => navigate(`/runs/${encodeURIComponent(run.id)}/report`)}
        >
          Report
        </Button>
      ) : null}
      <Menu
        align="end"
        trigger={
          <Button look="primary" icon={<RotateCcw size={14} />} disabled={isBusy}>
            Run again
            <ChevronDown size={13} aria-hidden="true" />
          </Button>
        }
      >
        <MenuItem icon={<RotateCcw size={14} />} onSelect={() => again({})}>
          With the same seed
        </MenuItem>
        <MenuItem icon={<Dices size={14} />} onSelect={() => again({ seed })}>
          With another seed: {seed}
        </MenuItem>
      </Menu>
    </>
  );
}
