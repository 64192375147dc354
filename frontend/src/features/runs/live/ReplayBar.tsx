import { GitFork, Pause, Play, SkipBack } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { formatClock, formatSeconds } from "@/lib/format";
import { useLiveRun, useLiveVersion, useRecord } from "@/live/hooks";
import { TICK } from "@/live/LiveRun";
import { ReplayPlayer } from "@/live/ReplayPlayer";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Segmented } from "@/ui/Segmented";
import { ForkDialog } from "../start/ForkDialog";

const SPEEDS = [1, 10, 60, 300] as const;
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
      <span
        className="tabular w-24 truncate text-muted text-xs"
        title={at ? `At ${formatClock(at)}, since the start of the run` : undefined}
      >
        {elapsedText(replay.startedAt, at)}
      </span>
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

/** Time from the start of a run to a moment of it; empty where one of them is not known. */
export function elapsedText(start: string | null, at: string | null): string {
  if (start === null || at === null) return "";
  const seconds = (Date.parse(at) - Date.parse(start)) / 1000;
  return Number.isFinite(seconds) ? `after ${formatSeconds(Math.max(0, seconds))}` : "";
}

export type Replay = ReturnType<typeof useReplay>;

export function useReplay() {
  const live = useLiveRun();
  const [player, setPlayer] = useState<ReplayPlayer | null>(null);
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<number>(SPEEDS[1]);
  const wanted = useRef(0);

  const seek = useCallback(
    (step: number, of: ReplayPlayer | null = player) => {
      const request = ++wanted.current;
      of?.seek(step).catch((error: unknown) => {
        const description = errorMessage(error);
        if (request === wanted.current)
          toast.error("That part of the run could not be loaded.", { description });
      });
    },
    [player],
  );
  const start = () => {
    if (!live) return;
    const last = live.run?.step ?? live.state.step ?? 0;
    const made = new ReplayPlayer(live.id, live.state.lastSeq, last);
    setPlayer(made);
    seek(last, made);
  };
  useEffect(() => {
    if (!player || !isPlaying) return;
    const timer = setInterval(() => {
      if (player.hasEnded) setPlaying(false);
      else void player.advance(TICK / 1000, speed).catch(() => setPlaying(false));
    }, TICK);
    return () => clearInterval(timer);
  }, [player, isPlaying, speed]);
  return {
    isOn: player !== null,
    player,
    startedAt: live?.run?.started_at ?? null,
    isPlaying,
    speed,
    start,
    stop: () => {
      setPlaying(false);
      setPlayer(null);
    },
    seek: (step: number) => seek(step),
    setPlaying: (plays: boolean) => {
      if (plays && player?.hasEnded) seek(0);
      setPlaying(plays);
    },
    setSpeed,
  };
}
