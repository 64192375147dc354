import { LoaderCircle, WifiOff } from "lucide-react";
import { useLive } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";
import { useStaleness } from "./useStaleness";

/** Says when what is shown is not the present. */
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
