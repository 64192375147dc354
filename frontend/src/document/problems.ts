/** Problems by place, counted once for each answer of the check. Pure. */
import type { Diagnostic, Severity } from "@/api/types";

export interface ProblemCounts {
  error: number;
  warning: number;
  hint: number;
}

export interface ProblemIndex {
  byNode: ReadonlyMap<string, readonly Diagnostic[]>;
  loop: readonly Diagnostic[];
  total: ProblemCounts;
}

const EMPTY: readonly Diagnostic[] = [];
const known = new WeakMap<readonly Diagnostic[], ProblemIndex>();
const RANK: Record<Severity, number> = { error: 0, warning: 1, hint: 2 };

export function indexProblems(diagnostics: readonly Diagnostic[] | undefined): ProblemIndex {
  const list = diagnostics ?? EMPTY;
  const found = known.get(list);
  if (found) return found;
  const byNode = new Map<string, Diagnostic[]>();
  const loop: Diagnostic[] = [];
  for (const problem of list) {
    if (problem.node) byNode.set(problem.node, [...(byNode.get(problem.node) ?? []), problem]);
    else loop.push(problem);
  }
  const index = { byNode, loop, total: countProblems(list) };
  known.set(list, index);
  return index;
}

export function countProblems(diagnostics: readonly Diagnostic[]): ProblemCounts {
  const counts: ProblemCounts = { error: 0, warning: 0, hint: 0 };
  for (const { severity } of diagnostics) counts[severity] += 1;
  return counts;
}

export function worstSeverity(diagnostics: readonly Diagnostic[]): Severity | null {
  let worst: Severity | null = null;
  for (const { severity } of diagnostics) {
    if (worst === null || RANK[severity] < RANK[worst]) worst = severity;
  }
  return worst;
}

/** What is said of lines of the text that a field is. */
export function textMarks(problems: readonly Diagnostic[]) {
  return problems.flatMap(({ text_line, severity, message }) =>
    typeof text_line === "number" ? [{ line: text_line, column: null, severity, message }] : [],
  );
}

/** Problems at a field or below it. */
export function problemsAt(
  diagnostics: readonly Diagnostic[],
  field: string,
  isExact: boolean,
): Diagnostic[] {
  return diagnostics.filter(
    (problem) => problem.field === field || (!isExact && problem.field?.startsWith(`${field}.`)),
  );
}
