/** What is typed as values to try. Pure. */
import type { Json } from "@/api/types";
import { readTyped } from "../start/ForkDialog";

export interface TriedField {
  path: string;
  /** Values as they were typed, separated by commas. */
  text: string;
}

/** The values in a text: commas inside brackets, braces and quotes belong to a value. */
export function valuesIn(text: string): Json[] {
  const values: string[] = [];
  let depth = 0;
  let quote = "";
  let word = "";
  for (const letter of text) {
    if (quote !== "") quote = letter === quote ? "" : quote;
    else if (letter === '"') quote = letter;
    else if ("[{".includes(letter)) depth += 1;
    else if ("]}".includes(letter)) depth -= 1;
    else if (letter === "," && depth === 0) {
      values.push(word);
      word = "";
      continue;
    }
    word += letter;
  }
  values.push(word);
  return values.filter((one) => one.trim() !== "").map(readTyped);
}

/** A third, the value itself, and three times it, as one tries a learning rate; null: it is no number. */
export function around(value: Json | undefined): string | null {
  if (typeof value !== "number" || value === 0) return null;
  if (Number.isInteger(value)) {
    const low = Math.max(1, Math.round(value / 2));
    return [...new Set([low, value, value * 2])].join(", ");
  }
  return [value / 3, value, value * 3].map((one) => String(Number(one.toPrecision(2)))).join(", ");
}

export function triedOf(fields: readonly TriedField[]): Record<string, Json[]> {
  return Object.fromEntries(
    fields
      .filter(({ path }) => path.trim() !== "")
      .map(({ path, text }) => [path.trim(), valuesIn(text)]),
  );
}

export function countRuns(fields: readonly TriedField[], seeds: number): number {
  const counts = Object.values(triedOf(fields)).map((values) => values.length);
  return counts.length === 0 ? 0 : counts.reduce((all, one) => all * one, seeds);
}
