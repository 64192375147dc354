/** Problems by place, counted once for each answer of the check. Pure. */

import type { Catalog, Diagnostic, Severity } from "@/api/types";
import { remember } from "@/lib/remember";

type ProblemCounts = Record<Severity, number>;

export interface ProblemIndex {
  byNode: ReadonlyMap<string, readonly Diagnostic[]>;
  loop: readonly Diagnostic[];
  total: ProblemCounts;
}

const EMPTY: readonly Diagnostic[] = [];

export function indexProblems(diagnostics: readonly Diagnostic[] | undefined): ProblemIndex {
  return indexOf(diagnostics ?? EMPTY);
}

const indexOf = remember((list: readonly Diagnostic[]): ProblemIndex => {
  const byNode = new Map<string, Diagnostic[]>();
  for (const problem of list) {
    if (problem.node) byNode.set(problem.node, [...(byNode.get(problem.node) ?? []), problem]);
  }
  return { byNode, loop: list.filter(({ node }) => !node), total: countProblems(list) };
});

export function countProblems(diagnostics: readonly Diagnostic[]): ProblemCounts {
  const counts: ProblemCounts = { error: 0, warning: 0, hint: 0 };
  for (const { severity } of diagnostics) counts[severity] += 1;
  return counts;
}

/** How findings are told: by the weight of the worst, or as the next step of a loop that is being drawn. */
export type Tone = Severity | "next step";

/** What is found, apart from what is only not there yet while the loop is drawn: the catalog says which that is. */
export interface Found {
  faults: readonly Diagnostic[];
  steps: readonly Diagnostic[];
}

export function splitProblems(
  { unfinished }: Pick<Catalog, "unfinished">,
  problems: readonly Diagnostic[],
): Found {
  const isStep = ({ code }: Diagnostic) => unfinished.includes(code);
  const later = ({ fixes }: Diagnostic) => (fixes?.length ? 0 : 1);
  return {
    faults: problems.filter((problem) => !isStep(problem)),
    steps: problems.filter(isStep).toSorted((a, b) => later(a) - later(b)),
  };
}

export function toneOf(
  catalog: Pick<Catalog, "unfinished">,
  problems: readonly Diagnostic[],
): Tone | null {
  const { faults, steps } = splitProblems(catalog, problems);
  return worstSeverity(faults) ?? (steps.length > 0 ? "next step" : null);
}

const REFUSED = "run.not_yet_runnable";

/** Why no run takes a valid loop, forced or not; null: one would. */
export function refusalOf(diagnostics: readonly Diagnostic[]): string | null {
  const refusal = diagnostics.find((one) => one.code === REFUSED)?.message;
  if (refusal === undefined) return null;
  return plainText(refusal.charAt(0).toUpperCase() + refusal.slice(1));
}

export function plainText(message: string): string {
  return message.replaceAll("`", "");
}

export function worstSeverity(diagnostics: readonly Diagnostic[]): Severity | null {
  const severities: readonly Severity[] = ["error", "warning", "hint"];
  return severities.find((one) => diagnostics.some(({ severity }) => severity === one)) ?? null;
}

export function textMarks(problems: readonly Diagnostic[]) {
  return problems.flatMap(({ text_line, severity, message }) =>
    typeof text_line === "number" ? [{ line: text_line, column: null, severity, message }] : [],
  );
}

export function problemsAt(
  diagnostics: readonly Diagnostic[],
  field: string,
  isExact: boolean,
): Diagnostic[] {
  return diagnostics.filter(
    (problem) => problem.field === field || (!isExact && problem.field?.startsWith(`${field}.`)),
  );
}
