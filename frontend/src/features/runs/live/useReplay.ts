import { useCallback, useEffect, useRef, useState } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { useLiveRun } from "@/live/hooks";
import { TICK } from "@/live/LiveRun";
import { ReplayPlayer } from "@/live/ReplayPlayer";

export const SPEEDS = [1, 10, 60, 300] as const;

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
