/** What is offered while Python is typed: names that are given, those of the text, and the language's own. */
import type { PrismEditor } from "prism-code-editor";
import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  findWords,
  fuzzyFilter,
  registerCompletions,
} from "prism-code-editor/autocomplete";
import { getClosestToken } from "prism-code-editor/utils";

export interface Word {
  label: string;
  /** Beside it in the list. */
  detail: string;
  help?: string;
}

const BUILTINS =
  "abs all any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex delattr dict dir divmod enumerate eval exec filter float format frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip";
const ERRORS =
  "ArithmeticError AssertionError AttributeError BaseException Exception FileNotFoundError ImportError IndexError KeyError LookupError MemoryError NameError OSError OverflowError RecursionError RuntimeError StopIteration SyntaxError TimeoutError TypeError UnicodeError ValueError Warning ZeroDivisionError";
const KEYWORDS =
  "and as assert async await break continue del elif else except False finally from global import in is lambda None nonlocal not or pass raise return True with yield";

/** What stands between `$` is a gap: the first is selected once it is written, Tab goes on to the next. */
const SHAPES: readonly Completion[] = [
  ["def", "function", "def $name$($args$):\n\t$$"],
  ["for", "loop", "for $name$ in $items$:\n\t$$"],
  ["while", "loop", "while $condition$:\n\t$$"],
  ["try", "block", "try:\n\t$pass$\nexcept $Exception$ as error:\n\t$raise$"],
  ["if", "block", "if $condition$:\n\t$$"],
  ["class", "definition", "class $Name$:\n\tdef __init__(self$$):\n\t\t$$"],
  ["import", "module", "import $module$"],
  ["from", "import of names", "from $module$ import $names$"],
].map(([label = "", detail = "", shape = ""]) => {
  let at = 0;
  const tabStops = shape
    .split("$")
    .slice(0, -1)
    .map((part) => (at += part.length));
  return { label, detail, insert: shape.replaceAll("$", ""), tabStops };
});

const words = (list: string, detail: string): Completion[] =>
  list.split(" ").map((label) => ({ label, detail }));

const PYTHON: readonly Completion[] = [
  ...SHAPES,
  ...words(BUILTINS, "built in"),
  ...words(ERRORS, "error"),
  ...words(KEYWORDS, "keyword"),
];

const given = new WeakMap<PrismEditor, readonly Word[]>();

/** Names that this editor offers before all others. */
export function offerWords(editor: PrismEditor, names: readonly Word[]): void {
  given.set(editor, names);
}

/** Whether a name fits what is typed, and how well. */
export function fits(typed: string, label: string) {
  const isLike = typed === "" || typed[0]?.toLowerCase() === label[0]?.toLowerCase();
  return isLike ? fuzzyFilter(typed, label) : undefined;
}

const QUIET = /comment|string|keyword|builtin|number|boolean/;

function offered(context: CompletionContext, editor: PrismEditor): CompletionResult | null {
  const { lineBefore, pos, explicit } = context;
  const typed = /[\p{L}\p{N}_]*$/u.exec(lineBefore)?.[0] ?? "";
  const from = pos - typed.length;
  if ((typed === "" && !explicit) || /^\d/.test(typed)) return null;
  const isCode =
    !lineBefore.slice(0, -typed.length || undefined).endsWith(".") &&
    !getClosestToken(editor, ".comment, .string", 0, 0, from);
  const own = isCode
    ? findWords(context, editor, (type) => !QUIET.test(type), /[\p{L}_][\p{L}\p{N}_]*/gu)
    : [];
  const names = new Map<string, Completion>();
  const add = (option: Completion) => names.has(option.label) || names.set(option.label, option);
  for (const { label, detail, help } of given.get(editor) ?? [])
    add({ label, detail, boost: 400, ...(help ? { renderDocs: () => [help] } : {}) });
  if (isCode) for (const option of PYTHON) add(option);
  for (const label of own) add({ label, detail: "in this code", boost: 200 });
  const options = [...names.values()];
  const isOnlyItself = options.every(
    ({ label, insert }) => (label === typed && !insert) || !fits(typed, label),
  );
  return isOnlyItself ? null : { from, options };
}

registerCompletions(["python"], { sources: [offered] });
