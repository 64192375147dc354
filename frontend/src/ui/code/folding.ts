/** What stands further in than its heading can be folded away. Places in what is shown, and in the text. Pure. */
import type { Change } from "./change";

/** A text of which some lines are folded away. */
export interface Shown {
  /** The lines that are shown, by their number in the text, from 0. */
  lines: readonly number[];
  text: string;
  /** Where each line of the text begins, and each shown one in what is shown. */
  starts: readonly number[];
  shownStarts: readonly number[];
}

export function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

export function startsOf(lines: readonly string[]): number[] {
  let at = 0;
  return lines.map((line) => {
    const start = at;
    at += line.length + 1;
    return start;
  });
}

/** The last line that belongs to this one; itself where there is none. */
export function foldEnd(lines: readonly string[], line: number): number {
  const heading = lines[line] ?? "";
  if (heading.trim() === "") return line;
  const indent = indentOf(heading);
  const isList = /:\s*(?:#.*)?$/.test(heading);
  let end = line;
  for (let at = line + 1; at < lines.length; at += 1) {
    const text = lines[at] ?? "";
    if (text.trim() === "") continue;
    const inside = indentOf(text) - indent;
    const closes = inside === 0 && end > line && /^\s*[)\]}]/.test(text);
    if (inside < 0 || (inside === 0 && !closes && !(isList && /^\s*-\s/.test(text)))) break;
    end = at;
    if (closes) break;
  }
  return end;
}

/** Whether something belongs to it: its next line with anything in it decides. */
export function hasInner(lines: readonly string[], line: number): boolean {
  let next = line + 1;
  while (next < lines.length && lines[next]?.trim() === "") next += 1;
  return next < lines.length && foldEnd(lines.slice(line, next + 1), 0) > 0;
}

export function shownOf(text: string, lines: readonly string[], folds: ReadonlySet<number>): Shown {
  const starts = startsOf(lines);
  const shown: number[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    shown.push(at);
    if (folds.has(at)) at = foldEnd(lines, at);
  }
  if (shown.length === lines.length) return { lines: shown, text, starts, shownStarts: starts };
  const texts = shown.map((line) => lines[line] ?? "");
  return { lines: shown, text: texts.join("\n"), starts, shownStarts: startsOf(texts) };
}

/** The last that is not above it. */
export function lineAt(starts: readonly number[], place: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Where a place of what is shown is in the text. */
export function inText({ lines, starts, shownStarts }: Shown, place: number): number {
  const at = lineAt(shownStarts, place);
  return (starts[lines[at] ?? 0] ?? 0) + place - (shownStarts[at] ?? 0);
}

/** Where a place of the text is shown: at the end of the heading where it is folded away. */
export function inShown({ lines, starts, shownStarts, text }: Shown, place: number): number {
  const line = lineAt(starts, place);
  const at = lineAt(lines, line);
  const next = shownStarts[at + 1];
  const end = next === undefined ? text.length : next - 1;
  if (lines[at] !== line) return end;
  return Math.min(end, (shownStarts[at] ?? 0) + place - (starts[line] ?? 0));
}

/** Folds after a change: one whose heading is broken or joined opens. */
export function foldsAfter(
  folds: ReadonlySet<number>,
  starts: readonly number[],
  { from, to, insert }: Change,
): ReadonlySet<number> {
  if (folds.size === 0) return folds;
  const first = lineAt(starts, from);
  const last = lineAt(starts, to);
  const added = insert.split("\n").length - 1;
  const isWithin = first === last && added === 0;
  const kept = [...folds].filter((line) => isWithin || line < first || line > last);
  return new Set(kept.map((line) => (line > last ? line + added - (last - first) : line)));
}
