/** What is said of places in a text. Pure. */
import { indentOf } from "./tokens";

export interface Mark {
  line: number;
  column: number | null;
  severity: "error" | "warning" | "hint";
  message: string;
}

export interface PlacedMark {
  from: number;
  to: number;
  severity: Mark["severity"];
  message: string;
}

/** Line and column, from 1, as a place of the text; the nearest one there is. A line's first sign without a column. */
export function placeOf(
  lines: readonly string[],
  starts: readonly number[],
  line: number,
  column: number | null,
): number {
  const at = Math.min(Math.max(1, line), lines.length) - 1;
  const text = lines[at] ?? "";
  const inside = Math.min(text.length, Math.max(0, column === null ? indentOf(text) : column - 1));
  return (starts[at] ?? 0) + inside;
}

/** Each at the word that it is about. */
export function placed(
  marks: readonly Mark[],
  lines: readonly string[],
  starts: readonly number[],
): PlacedMark[] {
  return marks.map(({ line, column, severity, message }) => {
    const from = placeOf(lines, starts, line, column);
    const at = Math.min(Math.max(1, line), lines.length) - 1;
    const rest = lines[at]?.slice(from - (starts[at] ?? 0)) ?? "";
    const word = /^[^\s,:}\]]+/.exec(rest)?.[0] ?? "";
    return { from, to: from + Math.max(Math.min(1, rest.length), word.length), severity, message };
  });
}

const RANK = { error: 0, warning: 1, hint: 2 };

export function worst(marks: readonly PlacedMark[]): PlacedMark["severity"] {
  return marks.toSorted((a, b) => RANK[a.severity] - RANK[b.severity])[0]?.severity ?? "hint";
}
