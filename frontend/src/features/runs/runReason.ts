/** Why a loop cannot be run as it is on the screen, or null. Pure. */

import type { Catalog } from "@/api/types";
import { countProblems, plainText, refusalOf, splitProblems } from "@/document/problems";
import type { SyncState } from "@/document/sync/state";
import { formatPlural } from "@/lib/format";

export function runReason(
  { check, checkStatus, brokenText }: SyncState,
  isEmpty: boolean,
  catalog: Pick<Catalog, "unfinished">,
): string | null {
  if (brokenText !== null) return "The YAML is invalid. Fix or discard it first.";
  if (isEmpty) return "There is nothing to run yet.";
  if (checkStatus === "offline") return "The server is not responding.";
  const diagnostics = check?.report.diagnostics ?? [];
  const { faults, steps } = splitProblems(catalog, diagnostics);
  const { error } = countProblems(faults);
  if (error > 0) return `${formatPlural(error, "error")} to fix first.`;
  const step = steps.find(({ severity }) => severity === "error");
  if (step) return `Not finished: ${plainText(step.message)}.`;
  return refusalOf(diagnostics);
}
