import { fetchRunSpec, resumeRun, startRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { withTrust } from "./TrustDialog";

interface Again {
  /** Without Ray, in one process of the server's machine. */
  in_one_process?: boolean;
}

export async function runAgain(run: RunSummary, how: Again = {}): Promise<RunSummary | null> {
  const { yaml } = await fetchRunSpec(run.id);
  const asked = { yaml, name: run.name, tags: run.tags, ...how };
  const loop = run.loop_id === null ? {} : { loop_id: run.loop_id };
  return withTrust((trust) => startRun({ ...asked, ...loop, trust }));
}

export function resumeFrom(run: RunSummary): Promise<RunSummary | null> {
  return withTrust((trust) => resumeRun(run.id, trust));
}
