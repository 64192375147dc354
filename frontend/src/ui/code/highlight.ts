/**
 * The colours of a text, piece by piece: what a change leaves as it was is not read again. A piece ends only
 * where nothing reaches over, so pieces have the colours that the whole has. Pure.
 */
import { highlightTokens, languages, Token, tokenizeText } from "prism-code-editor/prism";
import "prism-code-editor/prism/languages/python";
import "prism-code-editor/prism/languages/yaml";
import { indentOf } from "./folding";

export interface Piece {
  /** With the end of its last line, but for the last piece of a text. */
  text: string;
  lines: number;
  token: Token;
  html: readonly string[] | null;
}

/** Characters of a text, and of a line, above which there are no colours. */
export const MOST_IN_COLOUR = 200_000;
const LONGEST_IN_COLOUR = 2000;
/** Lines of a piece as it is cut, and to which it may grow; those that end where a value is expected. */
const CUT = 32;
const GROWN = 64;
const UNFINISHED = 256;

/** A text below its heading goes on below empty lines, and its heading may say what becomes of the last one. */
const scalar = languages.yaml?.scalar as { pattern: RegExp } | undefined;
const empty = "(?:\\n[ \\t]*(?=\\n))*";
if (scalar)
  scalar.pattern = new RegExp(
    scalar.pattern.source
      .replace("[|>])[ \t]*", `[|>][-+\\d]*)[ \\t]*${empty}`)
      .replace("(?:\\2.+)*", `(?:${empty}\\2.+)*`),
  );

/** What a line leaves open for the next; nothing: a piece may end here. */
type After = (open: string, line: string) => string;

const VALUE = ",";

const AFTER: Record<string, After> = {
  yaml: (open, line) => {
    const indent = indentOf(line);
    if (open.startsWith("|") && line.trim() === "") return open;
    if (open === "|" && indent > 0) return `|${indent}`;
    const kept = Number(open.slice(1));
    if (/^\|\d/.test(open) && indent >= kept) return open;
    if (/[|>][-+\d]*[ \t]*$/.test(line)) return "|";
    if (/^\s*#/.test(line)) return open === VALUE ? VALUE : "";
    return /[:,[{?-]\s*$/.test(line) || (open === VALUE && line.trim() === "") ? VALUE : "";
  },
  python: (open, line) => {
    let quote = open === "\\" ? "" : open;
    for (let at = 0; at < line.length; ) {
      if (quote) {
        const end = line.indexOf(quote, at);
        if (end < 0) return quote;
        at = end + 3;
        quote = "";
      } else {
        const sign = /#|"""|'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g;
        sign.lastIndex = at;
        const found = sign.exec(line);
        if (!found || found[0] === "#") break;
        if (/^(?:"""|''')$/.test(found[0])) quote = found[0];
        at = sign.lastIndex;
      }
    }
    return quote || (line.endsWith("\\") ? "\\" : "");
  },
};
const NOTHING_OPEN: After = () => "";

/** The pieces of a text; those of the text before it where they are still the same. */
export function piecesOf(text: string, language: string, before: readonly Piece[]): Piece[] {
  let start = 0;
  let first = 0;
  for (; first < before.length; first += 1) {
    const piece = before[first]?.text ?? "";
    const end = start + piece.length;
    const isLast = first === before.length - 1;
    if (!text.startsWith(piece, start) || (isLast && end < text.length)) break;
    start = end;
  }
  if (first > 0 && first === before.length) return [...before];
  let end = text.length;
  let last = before.length;
  for (; last > first; last -= 1) {
    const piece = before[last - 1]?.text ?? "";
    const at = end - piece.length;
    if (at < start || !text.startsWith(piece, at) || (at > start && text[at - 1] !== "\n")) break;
    end = at;
  }
  const { pieces, taken } = cut(text, start, end, language, before.slice(last));
  return [...before.slice(0, first), ...pieces, ...before.slice(last + taken)];
}

/** Cuts from one place to another, and on through what follows until nothing is left open. */
function cut(
  text: string,
  start: number,
  end: number,
  language: string,
  following: readonly Piece[],
) {
  const after = AFTER[language] ?? NOTHING_OPEN;
  const pieces: Piece[] = [];
  let stop = end;
  let taken = 0;
  let from = start;
  let lines = 0;
  let open = "";
  for (let at = start; ; ) {
    if (at >= stop) {
      const next = following[taken];
      if (!next || open === "") break;
      stop += next.text.length;
      taken += 1;
    }
    const line = text.indexOf("\n", at);
    const isLast = line < 0;
    open = after(open, text.slice(at, isLast ? text.length : line));
    at = isLast ? text.length : line + 1;
    lines += 1;
    const mayEnd = open === "" || (open === VALUE && lines >= UNFINISHED);
    const isEnough = lines >= CUT && hasLines(text, at, stop, GROWN - CUT);
    if (mayEnd && isEnough) {
      pieces.push(pieceOf(text.slice(from, at), lines, language));
      from = at;
      lines = 0;
      open = "";
    }
    if (isLast) break;
  }
  const rest = text.slice(from, stop);
  // What comes after the last end of a line is a line too, in the last piece of all.
  const isEnd = taken === following.length;
  if (rest !== "" || isEnd)
    pieces.push(pieceOf(rest, rest.split("\n").length - (isEnd ? 0 : 1), language));
  return { pieces, taken };
}

function hasLines(text: string, from: number, to: number, count: number): boolean {
  let at = from;
  for (let seen = 0; seen < count; seen += 1) {
    at = text.indexOf("\n", at) + 1;
    if (at === 0 || at > to) return false;
  }
  return true;
}

function pieceOf(text: string, lines: number, language: string): Piece {
  const grammar = hasLong(text) ? {} : (languages[language] ?? {});
  return {
    text,
    lines,
    token: new Token("piece", tokenizeText(text, grammar), text, ""),
    html: null,
  };
}

function hasLong(text: string): boolean {
  for (let at = 0; at + LONGEST_IN_COLOUR < text.length; ) {
    const end = text.indexOf("\n", at);
    if ((end < 0 ? text.length : end) - at > LONGEST_IN_COLOUR) return true;
    if (end < 0) return false;
    at = end + 1;
  }
  return false;
}

/** The lines of a piece as HTML, made when they are first shown. */
export function htmlOf(piece: Piece): readonly string[] {
  piece.html ??= highlightTokens(piece.token.content as never).split("\n");
  return piece.html;
}
