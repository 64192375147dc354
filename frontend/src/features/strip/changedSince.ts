/** Whether the open loop is still the one that a run ran. Pure. */
import type { RunSummary } from "@/api/types";

/** What to say of it; null where both mean the same, or one of them is not known. */
export function changedSince(run: RunSummary, hash: string | null): string | null {
  if (hash === null || run.spec_hash === null || run.spec_hash === hash) return null;
  return "The loop on the screen is another one than this run ran.";
}
