/**
 * The text of an editor: what is shown of it in the library's area, what is folded away, what can be taken back.
 * The area is where it is edited; all that it knows is what is shown.
 */
import { prevSelection, setSelection } from "prism-code-editor/utils";
import { type Change, changed, moved, smallestChange } from "./change";
import { foldEnd, foldsAfter, inShown, inText, lineAt, type Shown, shownOf } from "./folding";
import { History, type Way } from "./history";
import { type Mark, type PlacedMark, placed } from "./marks";
import type { Surface } from "./surface";

export type Selected = readonly [number, number];

export interface CodeState {
  text: string;
  lines: readonly string[];
  shown: Shown;
  folds: ReadonlySet<number>;
  selected: Selected;
  marks: readonly PlacedMark[];
  /** Whether Tab goes on to what comes next instead of indenting. */
  isTabFree: boolean;
}

const oneEnding = (text: string) => text.replaceAll(/\r\n?/g, "\n");

/** Keys that follow one another are one step; what is pasted or dropped or a command is one of its own. */
function wayOf(event: Event): Way {
  const way = event instanceof InputEvent && !prevSelection ? event.inputType : "";
  if (/^delete(?!ByCut|ByDrag)/.test(way)) return "deleted";
  return /^insert(?:Text|CompositionText)$/.test(way) ? "typed" : "whole";
}

/** A change that only shows other lines. */
const NOTHING: Change = { from: 0, to: 0, insert: "" };

export class CodeModel {
  state: CodeState;
  private readonly history = new History();
  private readonly listeners = new Set<() => void>();
  private isComposing = false;
  private waiting: string | null = null;

  constructor(
    readonly editor: Surface,
    private readonly onChange: (text: string) => void,
  ) {
    this.state = {
      ...read(editor.value, new Set()),
      selected: [0, 0],
      marks: [],
      isTabFree: false,
    };
    editor.on("selectionChange", () => this.look());
    editor.numberLines((row) => this.state.shown.lines[row] ?? row);
    const { textarea, container } = editor;
    textarea.addEventListener("input", (event) => this.takeIn(wayOf(event)));
    textarea.addEventListener("compositionstart", () => this.compose(true));
    textarea.addEventListener("compositionend", () => this.compose(false));
    // Before the library hears of them.
    container.addEventListener("beforeinput", (event) => this.guard(event as InputEvent), true);
    container.addEventListener("copy", (event) => this.copy(event), true);
    container.addEventListener("cut", (event) => this.copy(event), true);
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };
  get = () => this.state;

  /** What comes from outside: what was changed in the graph is undone in the graph. */
  setText(given: string): void {
    if (this.isComposing) {
      this.waiting = given;
      return;
    }
    const change = smallestChange(this.state.text, oneEnding(given));
    if (!change) return;
    this.history.pass(change);
    const [from, to] = this.state.selected;
    this.put(change, [moved(from, change), moved(to, change)]);
  }

  setMarks(marks: readonly Mark[]): void {
    if (marks.length === 0 && this.state.marks.length === 0) return;
    const { lines, shown } = this.state;
    this.set({ ...this.state, marks: placed(marks, lines, shown.starts) });
  }

  freeTab = () => this.set({ ...this.state, isTabFree: !this.state.isTabFree });
  undo = () => this.step(this.history.undo(this.state.text));
  redo = () => this.step(this.history.redo(this.state.text));

  /** Selects a place, and brings it into sight. */
  select(from: number, to = from): void {
    this.open(from);
    const { shown } = this.state;
    setSelection(this.editor, inShown(shown, from), inShown(shown, to));
    this.editor.extensions.cursor?.scrollIntoView();
  }

  fold(line: number, isFolded = !this.state.folds.has(line)): void {
    const folds = new Set(this.state.folds);
    if (isFolded && foldEnd(this.state.lines, line) > line) folds.add(line);
    else folds.delete(line);
    this.put(NOTHING, this.state.selected, folds);
  }

  unfoldAll(): void {
    if (this.state.folds.size > 0) this.put(NOTHING, this.state.selected, new Set());
  }

  /** Unfolds what hides a place. */
  private open(at: number): void {
    const { lines, folds, shown, selected } = this.state;
    const line = lineAt(shown.starts, at);
    if (shown.lines.includes(line)) return;
    const kept = [...folds].filter((heading) => line <= heading || line > foldEnd(lines, heading));
    this.put(NOTHING, selected, new Set(kept));
  }

  private step(change: Change | null): boolean {
    if (change) this.make(change, change.from + change.insert.length);
    return change !== null;
  }

  private make(change: Change, at: number): void {
    this.put(change, [at, at]);
    this.select(at);
    this.onChange(this.state.text);
  }

  /** What was written into the area, by keys or by the library's commands. */
  private takeIn(way: Way): void {
    const { shown, text } = this.state;
    const typed = smallestChange(shown.text, this.editor.textarea.value);
    if (!typed) return;
    const change = { ...typed, from: inText(shown, typed.from), to: inText(shown, typed.to) };
    this.history.add(text, change, way, performance.now());
    this.put(change, null);
    this.look();
    this.onChange(this.state.text);
  }

  /** The selection as the area has it now. */
  private look(): void {
    const { shown, selected } = this.state;
    const { value, selectionStart, selectionEnd } = this.editor.textarea;
    if (value !== shown.text) return;
    const from = inText(shown, selectionStart);
    const to = inText(shown, selectionEnd);
    if (from !== selected[0] || to !== selected[1])
      this.set({ ...this.state, selected: [from, to] });
  }

  /** What would take away what is folded without being seen opens it; undo is this editor's own. */
  private guard(event: InputEvent): void {
    const { inputType, isComposing } = event;
    if (inputType === "historyUndo" || inputType === "historyRedo") {
      event.preventDefault();
      if (!this.editor.options.readOnly) this[inputType === "historyUndo" ? "undo" : "redo"]();
      return;
    }
    const { shown, folds, text, selected } = this.state;
    const [from, to] = selected;
    if (folds.size === 0 || isComposing || from !== to || !inputType.startsWith("delete")) return;
    const line = lineAt(shown.starts, from);
    const isForward = inputType.includes("Forward");
    const edge = isForward ? text[from] === "\n" : from === shown.starts[line];
    const above = isForward ? line : shown.lines[lineAt(shown.lines, line) - 1];
    if (!edge || above === undefined || !folds.has(above)) return;
    event.preventDefault();
    this.fold(above, false);
  }

  /** Copies, or cuts, what is selected with what is folded in it. */
  private copy(event: ClipboardEvent): void {
    const { text, selected, folds } = this.state;
    const [from, to] = selected;
    if (from === to || folds.size === 0 || !event.clipboardData) return;
    event.preventDefault();
    event.stopPropagation();
    event.clipboardData.setData("text/plain", text.slice(from, to));
    if (event.type === "copy" || this.editor.options.readOnly) return;
    const edit = { from, to, insert: "" };
    this.history.add(text, edit, "whole", performance.now());
    this.make(edit, from);
  }

  private compose(isComposing: boolean): void {
    this.isComposing = isComposing;
    const given = this.waiting;
    if (isComposing || given === null) return;
    this.waiting = null;
    this.setText(given);
  }

  /** Makes a change; without a selection the area has it already, where nothing else is to be shown. */
  private put(change: Change, given: Selected | null, folds?: ReadonlySet<number>): void {
    const { state, editor } = this;
    const text = changed(state.text, change);
    const end = change.from + change.insert.length;
    const selected = given ?? [end, end];
    const kept = folds ?? foldsAfter(state.folds, state.shown.starts, change);
    const marks = state.marks.map((mark) => ({
      ...mark,
      from: moved(mark.from, change),
      to: moved(mark.to, change),
    }));
    const next = { ...state, ...read(text, kept), selected, marks };
    this.state = next;
    if (editor.textarea.value !== next.shown.text) {
      editor.textarea.value = next.shown.text;
      setSelection(editor, inShown(next.shown, selected[0]), inShown(next.shown, selected[1]));
      editor.update();
    }
    this.set(next);
  }

  private set(state: CodeState): void {
    this.state = state;
    for (const listener of this.listeners) listener();
  }
}

function read(text: string, folds: ReadonlySet<number>) {
  const lines = text.split("\n");
  return { text, lines, shown: shownOf(text, lines, folds), folds };
}
