import { GitFork, Pause, Play, SkipBack } from "lucide-react";
import { useState } from "react";
import { formatClock } from "@/lib/format";
import { useLiveVersion } from "@/live/hooks";
import { useRecord } from "@/live/recordContext";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Segmented } from "@/ui/Segmented";
import { ForkDialog } from "../start/ForkDialog";
import { type Replay, SPEEDS } from "./useReplay";

const SPEED_OPTIONS = SPEEDS.map((speed) => ({ value: String(speed), label: `${speed}×` }));

const NO_GAUGES =
  "This run was written by an older version of coloop, which did not record the rates of past steps. " +
  "Everything else is shown as it was.";

function ForkHere({ step }: { step: number }) {
  const run = useRecord()?.run;
  const [isOpen, setOpen] = useState(false);
  if (!run) return null;
  return (
    <>
      <Button
        size="small"
        icon={<GitFork size={13} />}
        title="Start a new run from the checkpoint at or before this step"
        onClick={() => setOpen(true)}
      >
        Fork from here
      </Button>
      <ForkDialog run={run} at={step} isOpen={isOpen} onClose={() => setOpen(false)} />
    </>
  );
}

export function ReplayBar({ replay }: { replay: Replay }) {
  const { player, isPlaying } = replay;
  useLiveVersion("gauges");
  if (!player) return null;
  const { at, hasGauges, step } = player;
  const { phases, running } = player.live.state;
  const stage = [...running.keys()].join(", ");
  return (
    <section
      aria-label="Replay"
      className="flex h-11 shrink-0 items-center gap-3 border-line border-b bg-accent-soft px-3 text-sm"
    >
      <IconButton
        label="Back to the start"
        size="small"
        onClick={() => replay.seek(0)}
        icon={<SkipBack size={14} />}
      />
      <IconButton
        label={isPlaying ? "Pause" : "Play"}
        size="small"
        onClick={() => replay.setPlaying(!isPlaying)}
        icon={isPlaying ? <Pause size={14} /> : <Play size={14} fill="currentColor" />}
      />
      <span className="min-w-0 max-w-40 truncate">
        <b>{phases.at(-1)?.name ?? "–"}</b>
      </span>
      <span className="tabular w-36 whitespace-nowrap">
        step <b data-testid="replay-step">{step}</b>
        <span className="text-muted"> of {player.lastStep}</span>
      </span>
      <input
        type="range"
        aria-label="Step that is shown"
        aria-valuetext={`step ${step} of ${player.lastStep}`}
        min={0}
        max={player.lastStep}
        step={1}
        value={step}
        className="min-w-24 flex-1 accent-(--accent)"
        onChange={(event) => {
          replay.setPlaying(false);
          replay.seek(Number(event.target.value));
        }}
      />
      <span className="tabular w-20 text-muted text-xs">{at ? formatClock(at) : ""}</span>
      {hasGauges ? (
        <span className="w-44 truncate text-muted text-xs max-xl:hidden" title={stage}>
          {stage}
        </span>
      ) : (
        <span className="whitespace-nowrap text-muted text-xs" title={NO_GAUGES}>
          No rates recorded
        </span>
      )}
      <Segmented
        label="Speed"
        value={String(replay.speed)}
        options={SPEED_OPTIONS}
        onChange={(speed) => replay.setSpeed(Number(speed))}
      />
      <ForkHere step={step} />
      <Button size="small" onClick={replay.stop}>
        Exit replay
      </Button>
    </section>
  );
}
