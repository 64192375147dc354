import { useEffect, useState } from "react";
import { useLiveRun } from "@/live/hooks";

const SILENT_SECONDS = 14;

/** Seconds since the server was last heard of, where that is longer than it should be; else 0. */
export function useStaleness(): number {
  const live = useLiveRun();
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => {
      const silent = (Date.now() - live.heardAt) / 1000;
      const isWatching = live.connection === "live" || live.connection === "reconnecting";
      const isStale = live.connection === "reconnecting" || silent > SILENT_SECONDS;
      setSeconds(isWatching && isStale ? Math.max(1, Math.round(silent)) : 0);
    }, 1000);
    return () => clearInterval(timer);
  }, [live]);
  return seconds;
}
