/** What a version of a loop is called in the history. */
import type { LoopVersion } from "@/api/types";

export function versionTitle({ label, reason, restored_from }: LoopVersion): string {
  if (label) return label;
  if (reason === "created") return "Created";
  return reason === "restored" ? `Restored from version ${restored_from}` : "Edited";
}

export function runsText({ runs }: LoopVersion): string {
  return runs === 1 ? "1 run" : `${runs} runs`;
}
