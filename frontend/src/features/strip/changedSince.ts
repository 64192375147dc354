/** Whether the open loop is still the one that a run ran. Pure. */
import type { RunSummary } from "@/api/types";

/** False where both mean the same, or one of them is not known. */
export function isChangedSince(run: RunSummary, hash: string | null): boolean {
  return hash !== null && run.spec_hash !== null && run.spec_hash !== hash;
}
