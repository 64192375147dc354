/** Several runs side by side: which, in which colours, and in what their loops differ. Pure. */
import type { RunSummary, SpecChange } from "@/api/types";
import { formatMetric } from "@/lib/format";

/** As many as there are colours that can be told apart. */
export const MOST_RUNS = 6;

export interface Compared {
  run: RunSummary;
  color: string;
}

/** The runs of an address `?runs=a,b`, each once. */
export function askedRuns(search: string): string[] {
  const ids = new URLSearchParams(search).get("runs")?.split(",") ?? [];
  return [...new Set(ids.filter((id) => id !== ""))].slice(0, MOST_RUNS);
}

/** Each run has its colour by its place, on every chart of the page. */
export function colorOf(place: number): string {
  return `var(--node-${place + 1})`;
}

/** One field in which some of the loops differ; values in the order of the runs. */
export interface Difference {
  path: string;
  title: string;
  values: string[];
}

/** From what each further run changes of the first one's loop, all fields with the values of all runs. */
export function differences(changes: readonly (readonly SpecChange[])[]): Difference[] {
  const paths = [...new Set(changes.flatMap((list) => list.map(({ path }) => path)))];
  return paths.map((path) => {
    const found = changes.map((list) => list.find((change) => change.path === path));
    const first = found.find((change) => change !== undefined);
    const base = valueText(first?.old);
    const others = found.map((change) => (change ? textOf(change) : base));
    return { path, title: titleOf(path), values: [base, ...others] };
  });
}

function textOf(change: SpecChange): string {
  const isPlain = typeof change.new !== "object" || change.new === null;
  return isPlain ? valueText(change.new) : change.words;
}

function titleOf(path: string): string {
  return path.replace(/^nodes\./, "").replaceAll("\\.", ".");
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return "default";
  if (typeof value === "number") return numberText(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

function numberText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : formatMetric(value);
}
