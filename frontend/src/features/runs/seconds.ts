import type { RunSummary } from "@/api/types";

/** From the start of a run to its end, else to `now`; null before it started, and where neither is known. */
export function secondsOf(
  { started_at, ended_at }: Pick<RunSummary, "started_at" | "ended_at">,
  now: number | null = null,
): number | null {
  const end = ended_at ? Date.parse(ended_at) : now;
  return started_at && end !== null ? (end - Date.parse(started_at)) / 1000 : null;
}
