import { LoaderCircle } from "lucide-react";
import type { RunSummary } from "@/api/types";
import { formatSeconds } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { useSeconds } from "@/ui/useSeconds";

/** Before this it is no wait. */
const SHOWN_AFTER_SECONDS = 3;

/** What a run that has not begun waits for, and for how long it was seen to. */
export function RunWaiting({ text }: { text: string }) {
  const seconds = useSeconds();
  return (
    <span className="flex min-w-0 items-center gap-1.5 whitespace-nowrap text-muted">
      <LoaderCircle size={13} className="shrink-0 animate-spin" aria-hidden="true" />
      <span role="status" className="truncate" title={text}>
        {text}
      </span>
      {seconds < SHOWN_AFTER_SECONDS ? null : (
        <span className="tabular" title="Since this page was opened">
          {seconds < 60 ? `${seconds} s` : formatSeconds(seconds)}
        </span>
      )}
    </span>
  );
}

/** The text for a run that waits; null for one that does not. */
export function useWaiting(): string | null {
  return useLive("status", (live) => waitingFor(live.run), null);
}

export function waitingFor(run: RunSummary | null): string | null {
  if (run?.state === "queued") return "Waits until another run has ended";
  if (run?.state !== "starting") return null;
  return `Starting: ${run.message ?? "the driver loads the engine and starts its workers"}`;
}
