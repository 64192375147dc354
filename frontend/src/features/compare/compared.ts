import type { RunSummary, SpecChange } from "@/api/types";
import { IDENTITIES, identityColor } from "@/lib/colors";

export const MAX_RUNS = IDENTITIES;

export interface Compared {
  run: RunSummary;
  color: string;
}

/** The runs of an address `?runs=a,b`, each once. */
export function askedRuns(search: string): string[] {
  const ids = new URLSearchParams(search).get("runs")?.split(",") ?? [];
  return [...new Set(ids.filter((id) => id !== ""))].slice(0, MAX_RUNS);
}

export function colorOf(place: number): string {
  return identityColor(place + 1);
}

/** One place in which some of the loops differ; values in the order of the runs. */
export interface Difference {
  path: string;
  where: string;
  values: string[];
}

/** From what each further run changes of the first one's loop, all places with the values of all runs. */
export function differences(changes: readonly (readonly SpecChange[])[]): Difference[] {
  const known = new Map(changes.flatMap((list) => list.map((change) => [change.path, change])));
  return [...known].map(([path, { where, before }]) => {
    const others = changes.map((list) => list.find((change) => change.path === path)?.after);
    return { path, where, values: [before, ...others.map((value) => value ?? before)] };
  });
}
