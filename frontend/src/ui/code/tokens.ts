/** Text in the colours of its language, line by line. Good enough to be looked at; the service reads it. Pure. */
export type Language = "yaml" | "python" | "plain";

export type Kind =
  | "plain"
  | "name"
  | "string"
  | "number"
  | "keyword"
  | "other"
  | "comment"
  | "mark"
  | "bracket";

export interface Token {
  kind: Kind;
  text: string;
}

export interface Line {
  text: string;
  /** What goes on from the line before, and into the next: the end of a string, or the indent of a block. */
  before: string;
  after: string;
  tokens: readonly Token[];
}

type Rule = readonly [RegExp, Kind | ((found: RegExpExecArray) => Kind)];

const PYTHON_WORDS =
  /^(?:and|as|assert|async|await|break|case|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|match|nonlocal|not|or|pass|raise|return|try|while|with|yield)$/;
const CONSTANTS = /^(?:True|False|None)$/;
const YAML_VALUES =
  /^(?:true|false|null|~|[-+]?(?:\d[\d_]*)?\.?\d+(?:e[-+]?\d+)?|[-+]?\.inf|\.nan|0x[\da-f]+)$/i;

const PYTHON: readonly Rule[] = [
  [/#.*/y, "comment"],
  [/[rbuf]{0,2}(?:"(?:[^"\\]|\\.)*(?:"|\\$)?|'(?:[^'\\]|\\.)*(?:'|\\$)?)/iy, "string"],
  [/(?:0[xob][\da-f_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[-+]?\d+)?j?)/iy, "number"],
  [/@[\w.]+/y, "other"],
  [/[\p{L}_][\p{L}\p{N}_]*/uy, pythonWord],
  [/[()[\]{}]/y, "bracket"],
  [/[,;:.]/y, "mark"],
];

const KEY_ENDS = /\s*:(?:\s|$)/.source;
const YAML: readonly Rule[] = [
  [/(?<![^\s])#.*/y, "comment"],
  [/^(?:---|\.\.\.)(?!\S)/y, "keyword"],
  [new RegExp(`(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^']|'')*')(?=${KEY_ENDS})`, "y"), "name"],
  [/"(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?/y, "string"],
  [new RegExp(`(?!-\\s)[^\\s:,[\\]{}#&*!|>"'][^:,[\\]{}#]*?(?=${KEY_ENDS})`, "y"), "name"],
  [/[&*!][^\s,[\]{}]+/y, "other"],
  [/[|>][-+\d]*(?=\s*(?:#.*)?$)/y, "mark"],
  [/[{}[\]]/y, "bracket"],
  [/(?:->|[,?]|:(?!\S)|-(?!\S))/y, "mark"],
  [/(?:[^\s,[\]{}:#]|:(?=\S)|(?<=\S)#)+/y, yamlValue],
];

const RULES: Record<Language, readonly Rule[]> = { yaml: YAML, python: PYTHON, plain: [] };

function pythonWord({ 0: word, index, input }: RegExpExecArray): Kind {
  if (CONSTANTS.test(word)) return "number";
  if (PYTHON_WORDS.test(word)) return "keyword";
  const isNamed = /\b(?:def|class)\s+$/.test(input.slice(0, index));
  return isNamed || /^\s*\(/.test(input.slice(index + word.length)) ? "other" : "plain";
}

/** A value is all of what stands there: `3 of 4` is no number. */
function yamlValue({ 0: value, index, input }: RegExpExecArray): Kind {
  const isWhole =
    /(?:^|[:,[{-])\s*$/.test(input.slice(0, index)) &&
    /^\s*(?:$|[,\]}]|#)/.test(input.slice(index + value.length));
  return isWhole && YAML_VALUES.test(value) ? "number" : "plain";
}

/** Lines with their tokens; those that are as they were are taken from before. */
export function readLines(
  texts: readonly string[],
  language: Language,
  known: readonly Line[] = [],
): Line[] {
  const shift = known.length - texts.length;
  let state = "";
  let isShifted = false;
  return texts.map((text, at) => {
    isShifted ||= known[at]?.text !== text;
    const same = (line: Line | undefined) => line?.text === text && line.before === state;
    const before = known[isShifted ? at + shift : at];
    const line = before && same(before) ? before : readLine(text, language, state);
    state = line.after;
    return line;
  });
}

function readLine(text: string, language: Language, before: string): Line {
  const tokens: Token[] = [];
  const put = (kind: Kind, from: number, to: number) => {
    const last = tokens.at(-1);
    if (last?.kind === kind && kind !== "bracket") last.text += text.slice(from, to);
    else if (to > from) tokens.push({ kind, text: text.slice(from, to) });
  };
  let state = before;
  let at = 0;
  if (state.startsWith("|")) {
    const isInside = text.trim() === "" || indentOf(text) > Number(state.slice(1));
    if (isInside) return { text, before, after: state, tokens: [{ kind: "string", text }] };
    state = "";
  }
  while (at < text.length) {
    const open = state === "" ? opened(text, at, language) : { from: at, quotes: state };
    if (open) {
      const end = text.indexOf(open.quotes, open.from);
      const to = end < 0 ? text.length : end + open.quotes.length;
      put("string", at, to);
      state = end < 0 ? open.quotes : "";
      at = to;
      continue;
    }
    const [kind, size] = nextToken(text, at, language);
    if (kind === "string" && language === "yaml") state = unclosed(text.slice(at, at + size));
    put(kind, at, at + size);
    at += size;
  }
  if (language === "yaml" && state === "") state = blockAfter(text, tokens);
  return { text, before, after: state, tokens };
}

/** A string of several lines that begins here. */
function opened(text: string, at: number, language: Language) {
  const begin = /[rbuf]{0,2}("""|''')/iy;
  begin.lastIndex = at;
  const found = language === "python" ? begin.exec(text) : null;
  return found?.[1] ? { from: begin.lastIndex, quotes: found[1] } : null;
}

function nextToken(text: string, at: number, language: Language): readonly [Kind, number] {
  for (const [pattern, kind] of RULES[language]) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found?.[0]) return [typeof kind === "string" ? kind : kind(found), found[0].length];
  }
  return ["plain", 1];
}

/** The quote that still has to come. */
function unclosed(text: string): string {
  const quote = text.charAt(0);
  const isClosed = text.length > 1 && text.endsWith(quote) && !/[^\\]\\(?:\\\\)*"$/.test(text);
  return isClosed ? "" : quote;
}

/** The text of `key: |` is what stands further in than the key. */
function blockAfter(text: string, tokens: readonly Token[]): string {
  const end = tokens.filter(({ kind, text: part }) => kind !== "comment" && part.trim() !== "");
  if (!/^[|>]/.test(end.at(-1)?.text ?? "")) return "";
  const dashes = /^\s*(?:-\s+)*(?=\S)/.exec(text)?.[0] ?? "";
  const hasKey = tokens.some(({ kind }) => kind === "name");
  return `|${hasKey ? dashes.length : Math.max(indentOf(text), dashes.lastIndexOf("-"))}`;
}

export function indentOf(text: string): number {
  return text.length - text.trimStart().length;
}
