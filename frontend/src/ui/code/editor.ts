/** CodeMirror behind a small surface. Knows text, marks and languages; nothing of loops. */
import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import {
  defaultKeymap,
  history,
  historyKeymap,
  indentWithTab,
  selectParentSyntax,
  toggleTabFocusMode,
  undoSelection,
} from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  indentOnInput,
  indentUnit,
  StreamLanguage,
} from "@codemirror/language";
import { jinja2 } from "@codemirror/legacy-modes/mode/jinja2";
import {
  type Diagnostic,
  forEachDiagnostic,
  lintGutter,
  lintKeymap,
  setDiagnostics,
} from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
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
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { completePython, type Word } from "./completePython";
import { look } from "./theme";

export type Language = "yaml" | "python" | "jinja" | "plain";

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
  words: () => readonly Word[];
  onChange: (text: string) => void;
  /** Messages of the line of the cursor while the editor has the focus; empty where there are none. */
  onLine: (messages: string) => void;
}

const PHRASES = {
  next: "Next",
  previous: "Previous",
  all: "All",
  "match case": "Match case",
  regexp: "Regular expression",
  "by word": "Whole word",
  replace: "Replace",
  "replace all": "Replace all",
};

const FromOutside = Annotation.define<boolean>();

const LANGUAGES: Record<Language, () => Extension> = {
  yaml: () => yaml(),
  python: () => python(),
  jinja: () => StreamLanguage.define(jinja2),
  plain: () => [],
};

const OWN_KEYS = [
  {
    key: "Shift-Alt-ArrowRight",
    mac: "Ctrl-Shift-Cmd-ArrowRight",
    run: selectParentSyntax,
  },
  { key: "Shift-Alt-ArrowLeft", mac: "Ctrl-Shift-Cmd-ArrowLeft", run: undoSelection },
  { key: "Ctrl-m", run: toggleTabFocusMode },
];

export function createEditor(parent: HTMLElement, options: EditorOptions): EditorHandle {
  const { label, language, words, onChange, onLine } = options;
  const locked = new Compartment();
  let waiting: string | null = null;

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
        language === "plain" ? [] : [closeBrackets(), indentOnInput()],
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        search({ top: true }),
        EditorState.phrases.of(PHRASES),
        indentUnit.of(language === "python" ? "    " : "  "),
        language === "python" ? completePython(words) : [],
        keymap.of([
          ...OWN_KEYS,
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          ...foldKeymap,
          ...searchKeymap,
          ...lintKeymap,
          indentWithTab,
        ]),
        LANGUAGES[language](),
        look,
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        locked.of(EditorState.readOnly.of(options.isReadonly)),
        EditorView.domEventHandlers({
          compositionend: () => {
            // CodeMirror reads the composed word first.
            setTimeout(() => {
              const text = waiting;
              waiting = null;
              if (text !== null) setText(text);
            });
          },
        }),
        EditorView.updateListener.of((update) => {
          const isTyped = update.transactions.some(
            (transaction) => transaction.docChanged && !transaction.annotation(FromOutside),
          );
          if (isTyped) onChange(update.state.doc.toString());
          if (update.selectionSet || update.focusChanged || update.transactions.length > 0)
            onLine(update.view.hasFocus ? messagesOfLine(update.state) : "");
        }),
      ],
    }),
  });

  // A message that comes above the editor pushes no line out of sight in which somebody writes.
  const resizing = new ResizeObserver(() => {
    if (view.hasFocus)
      view.dispatch({ effects: EditorView.scrollIntoView(view.state.selection.main.head) });
  });
  resizing.observe(view.scrollDOM);

  /** Text from outside waits for the end of a word that an input method composes. */
  function setText(text: string): void {
    if (view.compositionStarted) {
      waiting = text;
      return;
    }
    const changes = smallestChange(view.state.doc.toString(), text.replaceAll(/\r\n?/g, "\n"));
    // What was changed in the graph is undone in the graph.
    const annotations = [FromOutside.of(true), Transaction.addToHistory.of(false)];
    if (changes) view.dispatch({ changes, annotations });
  }

  return {
    setText,
    setReadonly: (isReadonly) =>
      view.dispatch({ effects: locked.reconfigure(EditorState.readOnly.of(isReadonly)) }),
    setMarks: (marks) =>
      view.dispatch(
        setDiagnostics(
          view.state,
          marks.map((mark) => diagnosticOf(view.state, mark)),
        ),
      ),
    goTo: (line, column) => {
      const at = position(view.state, line, column);
      view.dispatch({
        selection: { anchor: at },
        effects: EditorView.scrollIntoView(at, { y: "center" }),
      });
      view.focus();
    },
    destroy: () => {
      resizing.disconnect();
      view.destroy();
    },
  };
}

/** The nearest place there is; the first sign of the line without a column. Both count from 1. */
function position({ doc }: EditorState, line: number, column: number | null): number {
  const { from, to, text } = doc.line(Math.min(Math.max(1, line), doc.lines));
  const offset = column === null ? text.length - text.trimStart().length : column - 1;
  return Math.min(to, from + Math.max(0, offset));
}

function diagnosticOf(state: EditorState, { line, column, severity, message }: Mark): Diagnostic {
  const from = position(state, line, column);
  const { text, from: start, to: end } = state.doc.lineAt(from);
  const word = /^[^\s,:}\]]+/.exec(text.slice(from - start))?.[0] ?? "";
  const to = Math.min(end, from + Math.max(1, word.length));
  return { from, to, severity: severity === "hint" ? "info" : severity, message };
}

function messagesOfLine(state: EditorState): string {
  const { from, to } = state.doc.lineAt(state.selection.main.head);
  const messages: string[] = [];
  forEachDiagnostic(state, ({ severity, message }, start) => {
    if (start < from || start > to) return;
    const kind = severity === "info" ? "hint" : severity;
    messages.push(`${kind}: ${message.replaceAll("\n", ". ")}`);
  });
  return messages.join(". ");
}

/** The one piece in which two texts differ, or null. */
export function smallestChange(before: string, after: string) {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < shorter - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end += 1;
  }
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}
