import type { RunSummary } from "@/api/types";

/** From the start of a run to its end, or to now; null before it started. */
export function secondsOf({
  started_at,
  ended_at,
}: Pick<RunSummary, "started_at" | "ended_at">): number | null {
  if (!started_at) return null;
  const end = ended_at ? Date.parse(ended_at) : Date.now();
  return (end - Date.parse(started_at)) / 1000;
}
