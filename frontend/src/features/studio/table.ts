/** Rows of a preview as a table shows them: totals by the weights of the moment, order, disagreement. Pure. */

import type { ScoredRow, ScoredRows, SourceScores } from "@/api/types";
import { type PayingEdge, totalOf } from "@/document/rewards";

export type Sorting = "given" | "most" | "least" | "disagreement" | "failed";

export interface TableRow {
  row: ScoredRow;
  place: number;
  /** By source; null where it says nothing, or nothing that is one number. */
  scores: (number | null)[];
  failures: ({ message: string; line: number | null } | null)[];
  total: number | null;
  spread: number;
}

/** From here on sources disagree. */
export const APART = 0.6;

export function numberOf(score: unknown): number | null {
  if (typeof score === "number") return score;
  if (typeof score !== "object" || score === null) return null;
  const parts = Object.values(score).filter((one) => typeof one === "number");
  return parts.length === 0 ? null : parts.reduce((sum, one) => sum + one, 0);
}

export interface Table {
  sources: readonly SourceScores[];
  rows: readonly TableRow[];
}

export function tableRows(found: ScoredRows, edges: readonly PayingEdge[]): Table {
  const sources = edges.flatMap(
    (edge) => found.sources.find((source) => source.edge === edge.name) ?? [],
  );
  const weights = sources.map(
    (source) => edges.find((edge) => edge.name === source.edge)?.weight ?? 0,
  );
  const columns = sources.map((source) => source.scores.map(numberOf));
  const ranges = columns.map(rangeOf);
  const failures = sources.map(
    (source) => new Map(source.failures.map((one) => [one.row, one] as const)),
  );
  const rows = found.rows.map((row, place) => {
    const scores = columns.map((column) => column[place] ?? null);
    return {
      row,
      place,
      scores,
      failures: failures.map((known) => known.get(place) ?? null),
      total: totalOf(scores, weights, found.missing),
      spread: spreadOf(scores, ranges, weights),
    };
  });
  return { sources, rows };
}

interface Range {
  low: number;
  high: number;
}

function rangeOf(column: readonly (number | null)[]): Range {
  const numbers = column.filter((one) => one !== null);
  return { low: Math.min(...numbers), high: Math.max(...numbers) };
}

/**
 * Between what the sources with a weight say, each on the scale of these rows; one that says the same of all of
 * them tells none apart, and one that costs counts the other way round.
 */
function spreadOf(
  scores: readonly (number | null)[],
  ranges: readonly Range[],
  weights: readonly number[],
): number {
  const said = scores.flatMap((score, place) => {
    const range = ranges[place];
    const weight = weights[place] ?? 0;
    if (score === null || range === undefined || weight === 0) return [];
    if (range.high <= range.low) return [];
    const share = (score - range.low) / (range.high - range.low);
    return [weight < 0 ? 1 - share : share];
  });
  return said.length < 2 ? 0 : Math.max(...said) - Math.min(...said);
}

export function sorted(rows: readonly TableRow[], sorting: Sorting): readonly TableRow[] {
  const failed = (row: TableRow) => row.failures.filter((one) => one !== null).length;
  switch (sorting) {
    case "given":
      return rows;
    case "most":
      return rows.toSorted((a, b) => (b.total ?? -Infinity) - (a.total ?? -Infinity));
    case "least":
      return rows.toSorted((a, b) => (a.total ?? Infinity) - (b.total ?? Infinity));
    case "disagreement":
      return rows.toSorted((a, b) => b.spread - a.spread);
    case "failed":
      return rows.toSorted((a, b) => failed(b) - failed(a));
  }
}

export function plainText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    const last: unknown = value.at(-1);
    if (typeof last === "object" && last !== null && "content" in last) {
      return plainText(last.content);
    }
  }
  return JSON.stringify(value);
}
