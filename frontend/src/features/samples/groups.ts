/** Rows of one prompt together, and which text answers to which. Pure. */
import type { SampleRow } from "@/api/types";
import { mean } from "@/lib/statistics";
import { sampleText } from "./sampleText";

export interface PromptGroup {
  key: string;
  prompt: string;
  rows: SampleRow[];
}

export type Sorting = "given" | "best" | "worst";

const SIGNS: Record<Sorting, number> = { given: 0, best: -1, worst: 1 };

export function idOf(row: SampleRow): string {
  return String(row.id ?? row.seq);
}

function parentsOf(row: SampleRow): string[] {
  return Array.isArray(row.parents) ? row.parents.map(String) : [];
}

export function childrenOf(row: SampleRow, rows: readonly SampleRow[]): SampleRow[] {
  const id = idOf(row);
  return rows.filter((one) => parentsOf(one)[0] === id);
}

export function parentOf(row: SampleRow, rows: readonly SampleRow[]): SampleRow | null {
  const [nearest] = parentsOf(row);
  return rows.find((one) => idOf(one) === nearest) ?? null;
}

/**
 * Who judged a row in a text of theirs and is not among its scores: no verdict could be read of what they wrote.
 *
 * @param isJudge of a node
 */
export function undecidedOf(
  row: SampleRow,
  rows: readonly SampleRow[],
  isJudge: (node: string) => boolean,
): string[] {
  const judges = childrenOf(row, rows).flatMap(({ node }) => (node && isJudge(node) ? [node] : []));
  const scored = Object.entries(row.scores).flatMap(([name, score]) =>
    score === null ? [] : [name.split(".")[0]],
  );
  return [...new Set(judges)].filter((judge) => !scored.includes(judge));
}

export function rootOf(row: SampleRow, rows: readonly SampleRow[]): SampleRow {
  const above = parentOf(row, rows);
  return above === null || above === row ? row : rootOf(above, rows);
}

export function groupsOf(rows: readonly SampleRow[], sorting: Sorting): PromptGroup[] {
  const ids = new Set(rows.map(idOf));
  const groups = new Map<string, PromptGroup>();
  for (const row of rows) {
    if (parentsOf(row).some((id) => ids.has(id))) continue;
    const prompt = sampleText(row.prompt);
    const key = `${row.node ?? ""} ${row.group ?? prompt}`;
    const group = groups.get(key) ?? { key, prompt, rows: [] };
    groups.set(key, group);
    group.rows.push(row);
  }
  return [...groups.values()].toSorted((a, b) => SIGNS[sorting] * (meanReward(a) - meanReward(b)));
}

export function rewardsOf(rows: readonly SampleRow[]): number[] {
  return rows.flatMap(({ reward }) => (typeof reward === "number" ? [reward] : []));
}

function meanReward({ rows }: PromptGroup): number {
  return mean(rewardsOf(rows)) ?? 0;
}

/** The part of a text that answers: what is boxed, or stands in its last line. */
export function shortAnswer(text: string): string {
  const boxed = /\\boxed\{([^{}]*)\}/.exec(text)?.[1] ?? /<answer>([^<]*)/.exec(text)?.[1];
  const last = text.trim().split("\n").at(-1) ?? "";
  return (boxed ?? last).trim();
}

export function isWanted(row: SampleRow, words: string): boolean {
  if (words === "") return true;
  const text = `${sampleText(row.prompt)} ${sampleText(row.completion)}`.toLowerCase();
  return text.includes(words.toLowerCase());
}
