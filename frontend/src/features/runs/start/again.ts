import { fetchRunSpec, resumeRun, startRun } from "@/api/routes";
import type { Bodies, RunSummary } from "@/api/types";
import { withTrust } from "./TrustDialog";

/** Starts a run once more, with other values where `change` has some. Null where the user did not agree. */
export async function runAgain(
  { id, name, tags, loop_id }: RunSummary,
  change: Partial<Bodies["NewRun"]> = {},
): Promise<RunSummary | null> {
  const yaml = change.yaml ?? (await fetchRunSpec(id)).yaml;
  const loop = loop_id === null ? {} : { loop_id };
  return withTrust((trust) => startRun({ name, tags, ...loop, ...change, yaml, trust }));
}

export function resumeFrom({ id }: RunSummary): Promise<RunSummary | null> {
  return withTrust((trust) => resumeRun(id, trust));
}
