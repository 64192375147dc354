/** What keys do to a text and what is selected in it. Pure. */
import type { Edit } from "./change";
import { indentOf, type Language } from "./tokens";

/** A text, what is selected, and the language, by which it is indented. */
export interface Place {
  text: string;
  from: number;
  to: number;
  language: Language;
}

export type Command = (place: Place) => Edit | null;

const unitOf = ({ language }: Place) => (language === "python" ? "    " : "  ");

function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at - 1) + 1;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

/** The lines that are touched; not one of which only the start is. */
function linesOf({ text, from, to }: Place) {
  const start = lineStart(text, from);
  const last = to > from && text[to - 1] === "\n" ? to - 1 : to;
  const end = lineEnd(text, last);
  return { start, end, lines: text.slice(start, end).split("\n") };
}

/** Each line by itself; what is selected stays where it was in its line. */
function eachLine(place: Place, change: (line: string) => string): Edit | null {
  const { start, end, lines } = linesOf(place);
  const next = lines.map(change);
  const insert = next.join("\n");
  if (insert === place.text.slice(start, end)) return null;
  const shift = (at: number) => {
    const before = place.text.slice(start, Math.min(at, end)).split("\n");
    const index = before.length - 1;
    const column = before[index]?.length ?? 0;
    const line = next[index] ?? "";
    const grown = line.length - (lines[index]?.length ?? 0);
    const above = next.slice(0, index).reduce((sum, one) => sum + one.length + 1, 0);
    const isInIndent = grown > 0 ? column < indentOf(lines[index] ?? "") : false;
    const into = isInIndent ? column : Math.max(0, column + grown);
    return at > end ? at + insert.length - (end - start) : start + above + into;
  };
  return { from: start, to: end, insert, select: [shift(place.from), shift(place.to)] };
}

export const indent: Command = (place) =>
  eachLine(place, (line) => (line === "" && place.from !== place.to ? line : unitOf(place) + line));

export const outdent: Command = (place) =>
  eachLine(place, (line) => line.slice(Math.min(indentOf(line), unitOf(place).length)));

export const toggleComment: Command = (place) => {
  const { lines } = linesOf(place);
  const written = lines.filter((line) => line.trim() !== "");
  if (place.language === "plain" || written.length === 0) return null;
  if (written.every((line) => line.trimStart().startsWith("#")))
    return eachLine(place, (line) => line.replace(/^(\s*)# ?/, "$1"));
  const column = Math.min(...written.map(indentOf));
  return eachLine(place, (line) =>
    line.trim() === "" ? line : `${line.slice(0, column)}# ${line.slice(column)}`,
  );
};

/** A line further in after what opens a block; between brackets, one for each of them. */
export const newline: Command = (place) => {
  const { text, from, to, language } = place;
  const start = lineStart(text, from);
  const before = text.slice(start, from);
  const own = before.slice(0, indentOf(before));
  const code = language === "plain" ? "" : before.replace(/\s#.*$/, "").trimEnd();
  const opens = /[:([{]$|:\s*[|>][-+\d]*$/.test(code);
  const rest = text.slice(to, lineEnd(text, to));
  const dashes = language === "yaml" ? (/^\s*((?:-\s+)+)\S+\s*:/.exec(before)?.[1] ?? "") : "";
  const within = own + " ".repeat(dashes.length);
  const further = opens ? within + unitOf(place) : within;
  const insert = `\n${further}`;
  const isBetween = /[([{]$/.test(code) && /^\s*[)\]}]/.test(rest);
  const swallowed = to + (rest.length - rest.trimStart().length);
  return {
    from,
    to: swallowed,
    insert: isBetween ? `${insert}\n${own}` : insert,
    select: [from + insert.length, from + insert.length],
  };
};

/** A new line below, wherever in the line the cursor is. */
export const blankLine: Command = (place) => {
  const end = lineEnd(place.text, place.to);
  return newline({ ...place, from: end, to: end });
};

export const moveUp: Command = (place) => {
  const { start, end } = linesOf(place);
  if (start === 0) return null;
  const above = lineStart(place.text, start - 1);
  const insert = `${place.text.slice(start, end)}\n${place.text.slice(above, start - 1)}`;
  const by = above - start;
  return { from: above, to: end, insert, select: [place.from + by, place.to + by] };
};

export const moveDown: Command = (place) => {
  const { start, end } = linesOf(place);
  if (end === place.text.length) return null;
  const below = lineEnd(place.text, end + 1);
  const insert = `${place.text.slice(end + 1, below)}\n${place.text.slice(start, end)}`;
  const by = below - end;
  return { from: start, to: below, insert, select: [place.from + by, place.to + by] };
};

export const copyUp: Command = (place) => {
  const { start, end } = linesOf(place);
  const insert = `\n${place.text.slice(start, end)}`;
  return { from: end, to: end, insert, select: [place.from, place.to] };
};

export const copyDown: Command = (place) => {
  const { start, end } = linesOf(place);
  const insert = `${place.text.slice(start, end)}\n`;
  const by = insert.length;
  return { from: start, to: start, insert, select: [place.from + by, place.to + by] };
};

export const deleteLine: Command = (place) => {
  const { start, end } = linesOf(place);
  const isLast = end === place.text.length;
  const from = isLast ? Math.max(0, start - 1) : start;
  const to = isLast ? end : end + 1;
  const at = isLast ? lineStart(place.text, from) : start;
  return to > from ? { from, to, insert: "", select: [at, at] } : null;
};

/** From the first sign of the line to its start, and back. */
export function homeOf(text: string, at: number): number {
  const start = lineStart(text, at);
  const first = start + indentOf(text.slice(start, lineEnd(text, at)));
  return at === first ? start : first;
}

/** The whole line, with its end. */
export function wholeLines(place: Place): readonly [number, number] {
  const { start, end } = linesOf(place);
  return [start, Math.min(place.text.length, end + 1)];
}

/** What holds what is selected, one larger each time: word, line, what is as far in, all. */
export function larger(place: Place): readonly [number, number] {
  const { text, from, to } = place;
  const word = (at: number, step: number): number => {
    let end = at;
    while (/[\p{L}\p{N}_]/u.test(text.charAt(step > 0 ? end : end - 1))) end += step;
    return end;
  };
  const start = lineStart(text, from);
  const first = start + indentOf(text.slice(start, lineEnd(text, from)));
  const sizes: (readonly [number, number])[] = [
    [word(from, -1), word(to, 1)],
    [Math.min(first, from), lineEnd(text, to)],
    blockOf(text, from, to),
  ];
  const found = sizes.find(([a, b]) => a <= from && b >= to && b - a > to - from);
  return found ?? [0, text.length];
}

function blockOf(text: string, from: number, to: number): readonly [number, number] {
  const start = lineStart(text, from);
  const indent = indentOf(text.slice(start, lineEnd(text, from)));
  const isInside = (line: string) => line.trim() === "" || indentOf(line) >= indent;
  let [first, last] = [start, lineEnd(text, to)];
  while (first > 0 && isInside(text.slice(lineStart(text, first - 1), first - 1)))
    first = lineStart(text, first - 1);
  while (last < text.length && isInside(text.slice(last + 1, lineEnd(text, last + 1))))
    last = lineEnd(text, last + 1);
  return [first, last];
}
