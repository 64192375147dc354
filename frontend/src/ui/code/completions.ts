/** What is offered while Python is typed: names that are given, those of the text, and the language's own. Pure. */
import { type Line, readLines } from "./tokens";

export interface Word {
  label: string;
  /** Beside it in the list. */
  detail: string;
  help?: string;
}

export interface Option extends Word {
  /** What is written, where it is more than the name; `$` stands around what is then selected. */
  insert?: string;
}

export interface Offer {
  from: number;
  to: number;
  options: readonly Option[];
}

const BUILTINS =
  "abs all any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex delattr dict dir divmod enumerate eval exec filter float format frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip";
const ERRORS =
  "ArithmeticError AssertionError AttributeError BaseException Exception FileNotFoundError ImportError IndexError KeyError LookupError MemoryError NameError OSError OverflowError RecursionError RuntimeError StopIteration SyntaxError TimeoutError TypeError UnicodeError ValueError Warning ZeroDivisionError";
const KEYWORDS =
  "and as assert async await break continue del elif else except False finally from global import in is lambda None nonlocal not or pass raise return True with yield";

const SHAPES: readonly Option[] = [
  ["def", "function", "def $name$(args):\n    "],
  ["for", "loop", "for $name$ in items:\n    "],
  ["while", "loop", "while $condition$:\n    "],
  ["try", "block", "try:\n    $pass$\nexcept Exception as error:\n    raise"],
  ["if", "block", "if $condition$:\n    "],
  ["class", "definition", "class $Name$:\n    def __init__(self):\n        "],
  ["import", "module", "import $module$"],
  ["from", "import of names", "from $module$ import names"],
].map(([label = "", detail = "", insert = ""]) => ({ label, detail, insert }));

const words = (list: string, detail: string): Option[] =>
  list.split(" ").map((label) => ({ label, detail }));

let known: readonly Option[] | null = null;
function ofPython(): readonly Option[] {
  known ??= [
    ...SHAPES,
    ...words(BUILTINS, "built in"),
    ...words(ERRORS, "error"),
    ...words(KEYWORDS, "keyword"),
  ];
  return known;
}

const BOUND =
  /\b(?:def|class|import|as|for|global|nonlocal|lambda)\s+([\p{L}_][\p{L}\p{N}_]*)|([\p{L}_][\p{L}\p{N}_]*)\s*(?::[^=\n]*)?(?::?=(?!=)|,|\s+in\b)|\(([^()\n]*)\)\s*(?:->[^:]*)?:/gu;

/** Names that the text gives to something. */
function namesOf(lines: readonly Line[]): string[] {
  const code = lines
    .map(({ tokens }) =>
      tokens
        .map(({ kind, text }) => (kind === "string" || kind === "comment" ? " " : text))
        .join(""),
    )
    .join("\n");
  const found = new Set<string>();
  for (const [, bound, set, list] of code.matchAll(BOUND)) {
    for (const name of [bound, set, ...(list?.match(/[\p{L}_][\p{L}\p{N}_]*/gu) ?? [])])
      if (name) found.add(name);
  }
  return [...found];
}

/** What fits the word before the cursor; of no word, all, where it is asked for. */
export function offered(
  text: string,
  at: number,
  given: readonly Word[],
  isAsked: boolean,
  lines: readonly Line[] = readLines(text.split("\n"), "python"),
): Offer | null {
  const typed = /[\p{L}\p{N}_]*$/u.exec(text.slice(Math.max(0, at - 80), at))?.[0] ?? "";
  const from = at - typed.length;
  if ((typed === "" && !isAsked) || /^\d/.test(typed)) return null;
  const isCode = !isInText(lines, text, from);
  const isPart = text.charAt(from - 1) === ".";
  const own = isCode && !isPart ? namesOf(lines).filter((name) => name !== typed) : [];
  const all: Option[] = [
    ...given,
    ...own.map((label) => ({ label, detail: "in this code" })),
    ...(isCode && !isPart ? ofPython() : []),
  ];
  const seen = new Set<string>();
  const options = all
    .map((option, order) => ({ option, order, rank: rankOf(option.label, typed) }))
    .filter(({ option, rank }) => {
      const isNew = !seen.has(option.label);
      seen.add(option.label);
      return rank !== null && isNew;
    })
    .sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0) || a.order - b.order)
    .map(({ option }) => option);
  const isOnlyItself = options.length === 1 && options[0]?.label === typed && !options[0].insert;
  return options.length === 0 || isOnlyItself ? null : { from, to: at, options };
}

function isInText(lines: readonly Line[], text: string, at: number): boolean {
  const before = text.slice(0, at).split("\n");
  let column = before.at(-1)?.length ?? 0;
  for (const token of lines[before.length - 1]?.tokens ?? []) {
    column -= token.text.length;
    if (column < 0 || (column === 0 && token.kind === "comment"))
      return token.kind === "string" || token.kind === "comment";
  }
  return false;
}

/** 0: begins so. 1: a part of it does. 2: has these letters in this order. Null: fits not. */
function rankOf(label: string, typed: string): number | null {
  const name = label.toLowerCase();
  const part = typed.toLowerCase();
  if (name.startsWith(part)) return label.startsWith(typed) ? 0 : 0.5;
  if (name.includes(`_${part}`)) return 1;
  let at = 0;
  for (const letter of name) if (letter === part[at]) at += 1;
  return at === part.length && name[0] === part[0] ? 2 : null;
}
