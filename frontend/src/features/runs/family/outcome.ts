/** The main metric of a run in words. Pure. */
import type { Bodies } from "@/api/types";
import { formatMetric } from "@/lib/format";

export type RunOutcome = Bodies["RunOutcome"];

export function outcomeText({ start, end }: Pick<RunOutcome, "start" | "end">): string {
  if (!start || !end) return "";
  if (start.step === end.step) return formatMetric(end.value);
  return `${formatMetric(start.value)} → ${formatMetric(end.value)}`;
}

/** Whether the last reading is better than the first; null: there are not two. */
export function isBetter({
  start,
  end,
  better,
}: Pick<RunOutcome, "start" | "end" | "better">): boolean | null {
  if (!start || !end || start.step === end.step) return null;
  return better === "lower" ? end.value < start.value : end.value > start.value;
}
