import type { RunState } from "@/api/types";
import { Badge, type Tone } from "@/ui/Badge";

const TONES: Record<RunState, Tone> = {
  queued: "neutral",
  starting: "info",
  running: "accent",
  stopping: "warning",
  stopped: "neutral",
  finished: "success",
  failed: "error",
};

export const RUN_STATES = Object.keys(TONES) as RunState[];

export function RunStateChip({ state }: { state: RunState | null | undefined }) {
  const shown = state ?? "queued";
  return (
    <Badge tone={TONES[shown] ?? "neutral"}>
      {shown === "running" ? (
        <span className="size-1.5 animate-pulse rounded-full bg-current" />
      ) : null}
      <span data-run-state={shown}>{shown}</span>
    </Badge>
  );
}
