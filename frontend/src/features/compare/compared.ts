import type { RunSummary, SpecChange } from "@/api/types";
import { IDENTITIES, identityColor } from "@/lib/colors";

export const MAX_RUNS = IDENTITIES;

export interface Compared {
  run: RunSummary;
  color: string;
}

/** The distinct run ids in a query such as `?runs=a,b`, at most `MAX_RUNS` of them. */
export function askedRuns(search: string): string[] {
  const ids = new URLSearchParams(search).get("runs")?.split(",") ?? [];
  return [...new Set(ids.filter((id) => id !== ""))].slice(0, MAX_RUNS);
}

export function colorOf(index: number): string {
  return identityColor(index + 1);
}

/** A path at which some of the loops differ; `values` has one entry per run, in their order. */
export interface Difference {
  path: string;
  where: string;
  values: string[];
}

/** All paths at which the loops differ, from the changes of each further run against the first one. */
export function differences(changes: readonly (readonly SpecChange[])[]): Difference[] {
  const byPath = new Map(changes.flatMap((list) => list.map((change) => [change.path, change])));
  return [...byPath].map(([path, { where, before }]) => {
    const afters = changes.map((list) => list.find((change) => change.path === path)?.after);
    return { path, where, values: [before, ...afters.map((after) => after ?? before)] };
  });
}
