/** Final numbers of compared runs, and their samples of the same prompt. Pure. */
import type { Bodies, Catalog, RunSummary, SampleRow } from "@/api/types";
import { metricInfo, metricOf, tellingMetrics } from "@/catalog/metrics";
import { isObject } from "@/lib/paths";

type Outcome = Bodies["RunOutcome"];

export interface FinalRow {
  /** `node.metric`. */
  path: string;
  title: string;
  better: "higher" | "lower" | "none";
  /** Last value in each run; null where it has none. */
  values: (number | null)[];
  /** First value in each run, of the metric by which runs are compared. */
  starts: (number | null)[];
}

/** The metric by which the runs are compared first, then what evaluations measure, then the others. */
export function finalRows(
  catalog: Catalog,
  runs: readonly Pick<RunSummary, "id" | "metrics">[],
  outcomes: readonly Outcome[],
): FinalRow[] {
  const main = new Set(outcomes.flatMap(({ metric }) => (metric === null ? [] : [metric])));
  const paths = [...new Set(runs.flatMap(({ metrics }) => Object.keys(metrics)))];
  const told = tellingMetrics(catalog, paths, paths.length);
  const ordered = [...main, ...told.filter((path) => !main.has(path))];
  return ordered.map((path) => {
    const info = metricInfo(catalog, metricOf(path));
    const own = runs.map(({ id }) =>
      outcomes.find(({ run, metric }) => run === id && metric === path),
    );
    return {
      path,
      title: info.title,
      better: info.better === "higher" || info.better === "lower" ? info.better : "none",
      values: runs.map(({ metrics }, place) => own[place]?.end?.value ?? metrics[path] ?? null),
      starts: own.map((outcome) => outcome?.start?.value ?? null),
    };
  });
}

/** Value minus that of the first run; null where one of them has none. */
export function differenceOf(values: readonly (number | null)[], place: number): number | null {
  const [first, value] = [values[0] ?? null, values[place] ?? null];
  return place === 0 || first === null || value === null ? null : value - first;
}

export interface SamePrompt {
  prompt: string;
  /** The newest sample of each run; null where it has none of this prompt. */
  samples: (SampleRow | null)[];
}

/** Prompts of which at least two runs have a sample: those that most runs have first. */
export function samePrompts(rows: readonly (readonly SampleRow[])[]): SamePrompt[] {
  const found = new Map<string, (SampleRow | null)[]>();
  for (const [place, own] of rows.entries()) {
    for (const row of own) {
      const prompt = textOf(row.prompt);
      if (prompt === "") continue;
      const samples = found.get(prompt) ?? rows.map(() => null);
      const before = samples[place];
      if (!before || (row.step ?? 0) > (before.step ?? 0)) samples[place] = row;
      found.set(prompt, samples);
    }
  }
  const count = ({ samples }: SamePrompt) => samples.filter((one) => one !== null).length;
  return [...found]
    .map(([prompt, samples]) => ({ prompt, samples }))
    .filter((same) => count(same) > 1)
    .toSorted((a, b) => count(b) - count(a));
}

/** A text; of a chat its last message. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return "";
  const last: unknown = value.at(-1);
  return isObject(last) && typeof last.content === "string" ? last.content : "";
}
