/** Brackets and quotes that belong together. Pure. */
import { lineAt } from "./folding";
import type { Language, Line } from "./tokens";

const PAIRS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };
const OPENING = "([{";
const CLOSING = ")]}";
/** Lines that are looked through. */
const FAR = 1000;

interface Found {
  at: number;
  text: string;
}

/** The bracket at the cursor and its other one, or the one that has none. */
export function bracketsAt(
  lines: readonly Line[],
  starts: readonly number[],
  cursor: number,
): { places: readonly number[]; isPaired: boolean } | null {
  const line = lineAt(starts, cursor);
  const own = bracketsOf(lines[line], starts[line] ?? 0);
  const start = own.find(({ at }) => at === cursor - 1) ?? own.find(({ at }) => at === cursor);
  if (!start) return null;
  const other = otherOf(lines, starts, line, start);
  if (other === null) return { places: [start.at], isPaired: false };
  const isPaired = PAIRS[start.text] === other.text || PAIRS[other.text] === start.text;
  return { places: [start.at, other.at], isPaired };
}

function otherOf(
  lines: readonly Line[],
  starts: readonly number[],
  line: number,
  start: Found,
): Found | null {
  const step = OPENING.includes(start.text) ? 1 : -1;
  let depth = 0;
  for (let at = line, seen = 0; seen < FAR && at >= 0 && at < lines.length; at += step, seen += 1) {
    const found = bracketsOf(lines[at], starts[at] ?? 0);
    for (const one of step > 0 ? found : found.reverse()) {
      if ((one.at - start.at) * step < 0) continue;
      depth += (OPENING.includes(one.text) ? 1 : -1) * step;
      if (depth === 0) return one;
    }
  }
  return null;
}

function bracketsOf(line: Line | undefined, start: number): Found[] {
  let at = start;
  const found: Found[] = [];
  for (const { kind, text } of line?.tokens ?? []) {
    if (kind === "bracket") found.push({ at, text });
    at += text.length;
  }
  return found;
}

/** What a typed character closes by itself, or passes over; null where it is only typed. */
export function closing(
  text: string,
  [from, to]: readonly [number, number],
  typed: string,
  language: Language,
): { insert: string; by: number } | "pass" | null {
  const next = text.charAt(to);
  const before = text.charAt(from - 1);
  const isQuote = typed === '"' || typed === "'";
  const pair = isQuote ? typed : PAIRS[typed];
  if (from !== to) {
    return pair ? { insert: typed + text.slice(from, to) + pair, by: 1 } : null;
  }
  if ((isQuote || CLOSING.includes(typed)) && next === typed) return "pass";
  if (!pair) return null;
  if (isQuote && language === "python" && text.slice(from - 2, from) === typed + typed)
    return text.charAt(from - 3) === typed ? null : { insert: typed.repeat(4), by: 1 };
  if (next !== "" && !/[\s)\]},:;]/.test(next)) return null;
  if (
    isQuote &&
    /[\p{L}\p{N}_\\"']/u.test(before) &&
    !/(?:^|\W)[rbuf]{1,2}$/i.test(text.slice(0, from).slice(-3))
  )
    return null;
  return { insert: typed + pair, by: 1 };
}

/** Whether the cursor stands between two that were closed by themselves. */
export function isBetween(text: string, at: number): boolean {
  const before = text.charAt(at - 1);
  const after = text.charAt(at);
  return PAIRS[before] === after || (/["']/.test(before) && before === after);
}
