/**
 * The text of an editor: what is shown of it in a text area, what is folded away, what can be taken back. The
 * area is where keys, input methods and screen readers meet the text; all that it knows is what is shown.
 */
import { type Change, changed, type Edit, moved, smallestChange } from "./change";
import { type Command, wholeLines } from "./edits";
import { foldEnd, foldsAfter, inShown, inText, lineAt, type Shown, shownOf } from "./folding";
import { History, type Way } from "./history";
import { type Mark, type PlacedMark, placed } from "./marks";
import { type Language, type Line, readLines } from "./tokens";

export type Selected = readonly [number, number];

export interface CodeState {
  text: string;
  lines: readonly Line[];
  shown: Shown;
  folds: ReadonlySet<number>;
  selected: Selected;
  marks: readonly PlacedMark[];
  /** How often the cursor was put somewhere: it is then brought into sight. */
  moves: number;
}

interface Options {
  text: string;
  language: Language;
  now?: () => number;
  onChange: (text: string) => void;
}

const oneEnding = (text: string) => text.replaceAll(/\r\n?/g, "\n");

/** Keys that follow one another are one step; what is pasted or dropped is one of its own. */
function wayOf(event: Event): Way {
  const way = event instanceof InputEvent ? event.inputType : "";
  if (/^delete(?!ByCut|ByDrag)/.test(way)) return "deleted";
  return /^insert(?:Text|CompositionText)$/.test(way) ? "typed" : "whole";
}

export class CodeModel {
  state: CodeState;
  readonly language: Language;
  private readonly history = new History();
  private readonly listeners = new Set<() => void>();
  private area: HTMLTextAreaElement | null = null;
  private readonly now: () => number;
  private readonly onChange: (text: string) => void;
  private isComposing = false;
  private waiting: string | null = null;

  constructor({ text, language, onChange, now = () => performance.now() }: Options) {
    this.language = language;
    this.onChange = onChange;
    this.now = now;
    this.state = {
      ...this.read(oneEnding(text), new Set()),
      selected: [0, 0],
      marks: [],
      moves: 0,
    };
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };
  get = () => this.state;

  /** From now on this area shows the text; the answer lets it go. */
  attach(area: HTMLTextAreaElement): () => void {
    this.area = area;
    area.value = this.state.shown.text;
    area.setSelectionRange(0, 0);
    const listen = new AbortController();
    const { signal } = listen;
    area.addEventListener("input", (event) => this.takeIn(wayOf(event)), { signal });
    area.addEventListener("beforeinput", (event) => this.guard(event), { signal });
    area.addEventListener("compositionstart", () => this.compose(true), { signal });
    area.addEventListener("compositionend", () => this.compose(false), { signal });
    const look = () => document.activeElement === area && this.look();
    document.addEventListener("selectionchange", look, { signal });
    area.addEventListener("select", look, { signal });
    return () => {
      listen.abort();
      this.area = null;
    };
  }

  /** What comes from outside: what was changed in the graph is undone in the graph. */
  setText(given: string): void {
    if (this.isComposing) {
      this.waiting = given;
      return;
    }
    const change = smallestChange(this.state.text, oneEnding(given));
    if (!change) return;
    this.history.pass(change);
    const selected = this.state.selected.map((at) => moved(at, change));
    this.put(change, [selected[0] ?? 0, selected[1] ?? 0]);
  }

  /** An edit that is one step back; none for null. Whether there was something to do. */
  edit(edit: Edit | null, way: Way = "whole"): boolean {
    if (!edit || this.area?.readOnly) return false;
    this.history.add(this.state.text, edit, way, this.now());
    this.put(edit, edit.select);
    this.cameTo();
    this.onChange(this.state.text);
    return true;
  }

  run(command: Command): boolean {
    const [from, to] = this.state.selected;
    return this.edit(command({ text: this.state.text, from, to, language: this.language }));
  }

  undo = () => this.step(this.history.undo(this.state.text));
  redo = () => this.step(this.history.redo(this.state.text));

  select(from: number, to = from): void {
    this.open(from);
    this.area?.setSelectionRange(inShown(this.state.shown, from), inShown(this.state.shown, to));
    this.set({ ...this.state, selected: [from, to] });
    this.cameTo();
  }

  setMarks(marks: readonly Mark[]): void {
    if (marks.length === 0 && this.state.marks.length === 0) return;
    this.set({ ...this.state, marks: placed(marks, this.texts(), this.state.shown.starts) });
  }

  /** The selection as the area has it now. */
  look(): void {
    if (!this.area) return;
    const { shown, selected } = this.state;
    const from = inText(shown, this.area.selectionStart);
    const to = inText(shown, this.area.selectionEnd);
    if (from !== selected[0] || to !== selected[1])
      this.set({ ...this.state, selected: [from, to] });
  }

  /** Copies, or cuts, what is selected with what is folded in it; the whole line where nothing is. */
  copy(event: ClipboardEvent): void {
    const { text, selected, shown } = this.state;
    const [from, to] = selected;
    const isAll = shown.text === text;
    if ((from !== to && isAll) || !event.clipboardData) return;
    const place = { text, from, to, language: this.language };
    const [first, end] = from === to ? wholeLines(place) : selected;
    event.preventDefault();
    event.clipboardData.setData("text/plain", text.slice(first, end));
    if (event.type === "cut")
      this.edit({ from: first, to: end, insert: "", select: [first, first] });
  }

  fold(line: number, isFolded = !this.state.folds.has(line)): void {
    const folds = new Set(this.state.folds);
    if (isFolded && foldEnd(this.texts(), line) > line) folds.add(line);
    else folds.delete(line);
    this.put({ from: 0, to: 0, insert: "" }, this.state.selected, folds);
  }

  private cameTo(): void {
    this.set({ ...this.state, moves: this.state.moves + 1 });
  }

  private texts = () => this.state.lines.map(({ text }) => text);

  /** Unfolds what hides a place. */
  private open(at: number): void {
    const line = lineAt(this.state.shown.starts, at);
    if (this.state.shown.lines.includes(line)) return;
    const texts = this.texts();
    const folds = [...this.state.folds].filter(
      (heading) => line <= heading || line > foldEnd(texts, heading),
    );
    this.put({ from: 0, to: 0, insert: "" }, this.state.selected, new Set(folds));
  }

  private step(change: Change | null): boolean {
    if (!change) return false;
    const at = change.from + change.insert.length;
    this.put(change, [at, at]);
    this.open(at);
    this.cameTo();
    this.onChange(this.state.text);
    return true;
  }

  /** What was typed into the area. */
  private takeIn(way: Way): void {
    if (!this.area) return;
    const { shown, text } = this.state;
    const typed = smallestChange(shown.text, oneEnding(this.area.value));
    if (!typed) return;
    const change = { ...typed, from: inText(shown, typed.from), to: inText(shown, typed.to) };
    this.history.add(text, change, way, this.now());
    this.put(change, null);
    this.look();
    this.onChange(this.state.text);
  }

  /** What would take away what is folded without being seen opens it; undo is this editor's own. */
  private guard(event: InputEvent): void {
    const { inputType, isComposing } = event;
    if (inputType === "historyUndo" || inputType === "historyRedo") {
      event.preventDefault();
      if (inputType === "historyUndo") this.undo();
      else this.redo();
      return;
    }
    const [from, to] = this.state.selected;
    if (isComposing || from !== to || !inputType.startsWith("delete")) return;
    const { shown, folds, text } = this.state;
    const line = lineAt(shown.starts, from);
    const isForward = inputType.includes("Forward");
    const edge = isForward ? text[from] === "\n" : from === shown.starts[line];
    const above = isForward ? line : shown.lines[lineAt(shown.lines, line) - 1];
    if (!edge || above === undefined || !folds.has(above)) return;
    event.preventDefault();
    this.fold(above, false);
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
    const { state, area } = this;
    const text = changed(state.text, change);
    const end = change.from + change.insert.length;
    const selected = given ?? [end, end];
    const kept = folds ?? foldsAfter(state.folds, state.shown.starts, change);
    const marks = state.marks.map((mark) => ({
      ...mark,
      from: moved(mark.from, change),
      to: moved(mark.to, change),
    }));
    const next = { ...state, ...this.read(text, kept), selected, marks };
    const isOther = area !== null && area.value !== next.shown.text;
    if (isOther) area.value = next.shown.text;
    if (area && (given || isOther))
      area.setSelectionRange(inShown(next.shown, selected[0]), inShown(next.shown, selected[1]));
    this.set(next);
  }

  private read(text: string, folds: ReadonlySet<number>) {
    const texts = text.split("\n");
    const lines = readLines(texts, this.language, this.state?.lines);
    return { text, lines, shown: shownOf(text, texts, folds), folds };
  }

  private set(state: CodeState): void {
    this.state = state;
    for (const listener of this.listeners) listener();
  }
}
