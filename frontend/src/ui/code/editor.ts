/** CodeMirror behind a small surface. Knows text, marks and languages; nothing of loops. */
import { closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import {
  bracketMatching,
  foldGutter,
  HighlightStyle,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { type Diagnostic as Lint, lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import {
  Annotation,
  Compartment,
  EditorState,
  type Extension,
  Transaction,
} from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completePython, unread, type Word } from "./completePython";
import { smallestChange } from "./smallestChange";

export type Language = "yaml" | "python" | "plain";

export interface Mark {
  line: number;
  column: number | null;
  severity: "error" | "warning" | "hint";
  message: string;
}

export interface EditorHandle {
  setText: (text: string) => void;
  setReadonly: (isReadonly: boolean) => void;
  setMarks: (marks: readonly Mark[]) => void;
  goTo: (line: number, column: number) => void;
  destroy: () => void;
}

interface EditorOptions {
  label: string;
  language: Language;
  text: string;
  isReadonly: boolean;
  /** Offered while Python is typed, with what the language itself has. */
  words?: () => readonly Word[];
  onChange: (text: string) => void;
}

/** Marks changes that did not come from typing. */
const FromOutside = Annotation.define<boolean>();

/** After the last key, before it is said what is wrong. */
const WAIT = 400;

const LANGUAGES: Record<Language, () => Extension> = {
  yaml: () => yaml(),
  python: () => python(),
  plain: () => [],
};

const COLORS = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--syntax-name)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--syntax-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--syntax-number)" },
  {
    tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword],
    color: "var(--syntax-keyword)",
  },
  {
    tag: [tags.function(tags.variableName), tags.definition(tags.variableName)],
    color: "var(--syntax-other)",
  },
  { tag: [tags.comment, tags.lineComment], color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket], color: "var(--muted)" },
]);

const THEME = EditorView.theme({
  "&": {
    height: "100%",
    fontSize: "12px",
    backgroundColor: "var(--surface)",
    color: "var(--text)",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "18px" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in oklab, var(--hover) 50%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": {
    backgroundColor: "color-mix(in oklab, var(--focus) 30%, transparent) !important",
  },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
});

export function createEditor(parent: HTMLElement, options: EditorOptions): EditorHandle {
  const locked = new Compartment();
  const lock = (isReadonly: boolean) => [
    EditorState.readOnly.of(isReadonly),
    EditorView.editable.of(!isReadonly),
  ];
  let marks: readonly Mark[] = [];
  let looking: ReturnType<typeof setTimeout> | undefined;
  /** Shows what others say of the text, and what cannot be read of it. */
  const look = () => {
    const own = options.language === "python" ? unread(view.state) : [];
    const told = [...own, ...marks.map((mark) => lint(view, mark))];
    view.dispatch(setDiagnostics(view.state, told));
  };
  const lookSoon = () => {
    if (options.language !== "python") return;
    clearTimeout(looking);
    looking = setTimeout(look, WAIT);
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        lineNumbers(),
        foldGutter(),
        lintGutter(),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        indentUnit.of(options.language === "python" ? "    " : "  "),
        options.language === "python" ? completePython(options.words ?? (() => [])) : [],
        keymap.of([
          ...completionKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          ...searchKeymap,
          indentWithTab,
        ]),
        LANGUAGES[options.language](),
        syntaxHighlighting(COLORS),
        THEME,
        EditorView.contentAttributes.of({ "aria-label": options.label, tabindex: "0" }),
        locked.of(lock(options.isReadonly)),
        EditorView.updateListener.of((update) => {
          const isTyped = update.transactions.some(
            (one) => one.docChanged && !one.annotation(FromOutside),
          );
          if (isTyped) options.onChange(update.state.doc.toString());
          if (update.docChanged) lookSoon();
        }),
      ],
    }),
  });

  return {
    setText: (text) => {
      const change = smallestChange(view.state.doc.toString(), text);
      // What was changed in the graph is undone in the graph.
      const annotations = [FromOutside.of(true), Transaction.addToHistory.of(false)];
      if (change) view.dispatch({ changes: change, annotations });
    },
    setReadonly: (isReadonly) => view.dispatch({ effects: locked.reconfigure(lock(isReadonly)) }),
    setMarks: (given) => {
      marks = given;
      look();
    },
    goTo: (line, column) => {
      const at = position(view, line, column);
      view.dispatch({
        selection: { anchor: at },
        effects: EditorView.scrollIntoView(at, { y: "center" }),
      });
      view.focus();
    },
    destroy: () => {
      clearTimeout(looking);
      view.destroy();
    },
  };
}

function position(view: EditorView, line: number, column: number | null): number {
  const { doc } = view.state;
  const found = doc.line(Math.min(Math.max(1, line), doc.lines));
  return Math.min(found.to, found.from + Math.max(0, (column ?? 1) - 1));
}

function lint(view: EditorView, mark: Mark): Lint {
  const from = position(view, mark.line, mark.column);
  const line = view.state.doc.lineAt(from);
  const word = /^[^\s,:}\]]+/.exec(line.text.slice(from - line.from));
  const to = Math.min(line.to, from + Math.max(1, word?.[0].length ?? 1));
  return {
    from,
    to,
    severity: mark.severity === "hint" ? "info" : mark.severity,
    message: mark.message,
  };
}
