/** Why a loop cannot be run as it is on the screen, or null. Pure. */

import type { Catalog } from "@/api/types";
import { countProblems, splitProblems } from "@/document/problems";
import type { SyncState } from "@/document/sync/state";
import { formatPlural } from "@/lib/format";

/** What can be drawn, checked and estimated, but not run by this version. */
const REFUSED = "run.not_yet_runnable";

export function runReason(
  { check, checkStatus, brokenText }: SyncState,
  isEmpty: boolean,
  catalog: Pick<Catalog, "unfinished">,
): string | null {
  if (brokenText !== null) return "The text does not read. Mend or discard it first.";
  if (isEmpty) return "There is nothing to run yet.";
  if (checkStatus === "offline") return "The server does not answer.";
  const diagnostics = check?.report.diagnostics ?? [];
  const { faults, steps } = splitProblems(catalog, diagnostics);
  const { error } = countProblems(faults);
  if (error > 0) return `${formatPlural(error, "error")} to mend first.`;
  const step = steps.find(({ severity }) => severity === "error");
  if (step) return `Not finished: ${plain(step.message)}.`;
  const refusal = diagnostics.find((one) => one.code === REFUSED)?.message;
  if (refusal === undefined) return null;
  return plain(refusal.charAt(0).toUpperCase() + refusal.slice(1));
}

function plain(message: string): string {
  return message.replaceAll("`", "");
}
