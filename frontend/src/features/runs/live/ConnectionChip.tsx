import { LoaderCircle, WifiOff } from "lucide-react";
import { useEffect, useState } from "react";
import { useLive, useLiveRun } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";

export function ConnectionChip() {
  const connection = useLive("status", (live) => live.connection, "loading");
  const stale = useStaleness();
  if (connection === "loading") {
    return (
      <span role="status" className="flex items-center gap-1 text-muted text-xs">
        <LoaderCircle size={13} className="animate-spin" /> loading history
      </span>
    );
  }
  if (stale === 0) return null;
  return (
    <Tooltip text="The connection to the server was lost. The run continues; the page catches up as soon as it can.">
      <span
        role="status"
        className="flex items-center gap-1 rounded-full bg-warning-soft px-2 py-0.5 text-warning text-xs"
      >
        <WifiOff size={13} aria-hidden="true" /> stale for {stale} s
      </span>
    </Tooltip>
  );
}

const SILENT_SECONDS = 14;

/** Seconds since the server was last heard of, where that is longer than it should be; else 0. */
function useStaleness(): number {
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
