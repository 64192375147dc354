/** The library's editor, with what of it is used, and the keys that it has not. */
import { languageMap, type PrismEditor } from "prism-code-editor";
import { autoComplete } from "prism-code-editor/autocomplete";
import { addEditorHotkey, defaultKeymap, editorCommands } from "prism-code-editor/commands";
import { cursorPosition } from "prism-code-editor/cursor";
import { highlightBracketPairs } from "prism-code-editor/highlight-brackets";
import "prism-code-editor/languages/python";
import "prism-code-editor/languages/yaml";
import { matchBrackets } from "prism-code-editor/match-brackets";
import { highlightSelectionMatches, searchWidget } from "prism-code-editor/search";
import { getLineBefore, getLines, setSelection } from "prism-code-editor/utils";
import type { CodeModel } from "./CodeModel";
import { fits } from "./completions";
import { indentOf, lineAt } from "./folding";
import { grown } from "./grow";
import { replaceGroups } from "./replaceGroups";
import { createSurface, type Surface } from "./surface";

export type Language = "yaml" | "python" | "plain";

const PAIRS = ['""', "''", "()", "[]", "{}"];

/** What ends with a colon has its own below it, further in. */
const { comments, autoIndent } = languageMap.yaml ?? {};
languageMap.yaml = {
  ...(comments ? { comments } : {}),
  autoIndent: [
    ([from], text) => /(?:[([{][^)\]}]*|:\s*)$/.test(getLineBefore(text, from)),
    autoIndent?.[1],
  ],
};

export function libraryEditor(label: string, language: Language, value: string): Surface {
  const isCode = language !== "plain";
  const editor = createSurface(
    { language, value, tabSize: language === "python" ? 4 : 2 },
    cursorPosition(),
    editorCommands(defaultKeymap, isCode ? PAIRS : []),
    searchWidget(),
    highlightSelectionMatches(true),
    ...(isCode ? [matchBrackets(false), highlightBracketPairs()] : []),
    ...(language === "python" ? [autoComplete({ filter: fits })] : []),
  );
  editor.textarea.setAttribute("aria-label", label);
  const count = editor.extensions.searchWidget?.element.querySelector(".pce-match-count");
  count?.setAttribute("role", "status");
  replaceGroups(editor);
  return editor;
}

/** With Alt, a Mac selects words. */
const GROW = /Mac|iP(?:hone|ad)/.test(navigator.platform) ? "Ctrl+Shift+Meta" : "Shift+Alt";

/** Keys of the text. After Escape, Tab goes on to what comes next. */
export function addKeys(model: CodeModel): void {
  const { editor } = model;
  const { container, keyCommandMap, options } = editor;
  const lineNow = () => lineAt(model.state.shown.starts, model.state.selected[1]);
  const passed: (readonly [number, number])[] = [];
  const keys: Record<string, () => unknown> = {
    [`${GROW}+ArrowRight`]: () => {
      const { brackets = [], pairs = [] } = editor.extensions.matchBrackets ?? {};
      const closed = brackets.flatMap(([, from, to, , , isOpening], at) => {
        const other = brackets[pairs[at] ?? -1];
        return isOpening && other
          ? [
              [
                [from, to],
                [other[1], other[2]],
              ] as const,
            ]
          : [];
      });
      const now = selected(editor);
      const next = grown(editor.value, now, closed);
      if (!next) return;
      const last = passed.at(-1);
      if (!last || last[0] < now[0] || last[1] > now[1]) passed.length = 0;
      passed.push(now);
      setSelection(editor, ...next);
    },
    [`${GROW}+ArrowLeft`]: () => {
      const before = passed.pop();
      const [from, to] = selected(editor);
      if (before && before[0] >= from && before[1] <= to) setSelection(editor, ...before);
    },
    "Mod+Z": () => options.readOnly || model.undo(),
    "Mod+Y": () => options.readOnly || model.redo(),
    "Mod+Shift+Z": () => options.readOnly || model.redo(),
    "Mod+Shift+[": () => model.fold(lineNow(), true),
    "Mod+Shift+]": () => model.fold(lineNow(), false),
    "Mod+Shift+\\": () => toBracket(editor),
    "Alt+L": () => {
      const [, start, end] = getLines(editor.value, ...selected(editor));
      setSelection(editor, start, Math.min(end + 1, editor.value.length));
    },
    home: () => {
      const at = selected(editor)[0];
      const [[line = ""], start] = getLines(editor.value, at);
      const first = start + indentOf(line);
      setSelection(editor, at === first ? start : first);
    },
  };
  for (const [key, run] of Object.entries(keys))
    addEditorHotkey(editor, key, () => {
      run();
      return true;
    });

  let isLeaving = false;
  keyCommandMap.Escape = null;
  addEditorHotkey(editor, "Escape", () => {
    isLeaving = true;
  });
  container.addEventListener(
    "keydown",
    (event) => {
      // A search finds nothing in what is folded away.
      if (/^[fgh]$/.test(event.key) && (event.ctrlKey || event.metaKey)) model.unfoldAll();
      // Of this editor alone; the library has one such key for all of them.
      if (/^m$/i.test(event.key) && event.ctrlKey && !event.altKey && !event.metaKey) {
        model.freeTab();
        event.preventDefault();
        event.stopPropagation();
      }
      if (event.key === "Tab" && (isLeaving || model.state.isTabFree)) event.stopPropagation();
      if (event.key !== "Shift") isLeaving = false;
    },
    true,
  );
}

/** Where somebody types stays in sight when what is said of it takes room from the text. */
export function keepCursorInSight({ container, textarea, extensions }: PrismEditor): () => void {
  let height = 0;
  const watch = new ResizeObserver(() => {
    const isLower = container.clientHeight < height;
    height = container.clientHeight;
    if (isLower && document.activeElement === textarea) extensions.cursor?.scrollIntoView();
  });
  watch.observe(container);
  return () => watch.disconnect();
}

const selected = (editor: PrismEditor) => editor.getSelection().slice(0, 2) as [number, number];

function toBracket(editor: PrismEditor): void {
  const { brackets = [], pairs = [] } = editor.extensions.matchBrackets ?? {};
  const at = selected(editor)[1];
  const own = brackets.findIndex(([, from, to]) => to === at || from === at);
  const other = brackets[pairs[own] ?? -1];
  if (other) setSelection(editor, other[5] ? other[1] : other[2]);
}
