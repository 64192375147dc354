/**
 * What a text is edited on: an area that has the text, and below it the lines in sight, in colours. To the
 * library's extensions it is the library's editor, which has every line of the text in the page.
 */
import type {
  EditorExtension,
  EditorOptions,
  InputSelection,
  PrismEditor,
} from "prism-code-editor";
import { numLines } from "prism-code-editor";
import type { Token } from "prism-code-editor/prism";
import { MOST_IN_COLOUR, type Piece, piecesOf } from "./highlight";
import { Rows } from "./rows";

type Listener = (this: PrismEditor, ...told: never[]) => unknown;

export interface Surface extends PrismEditor {
  /** Which number stands beside a line of the area, both from 0. */
  numberLines(numberOf: (row: number) => number): void;
}

function parts() {
  const [container, wrapper, overlays] = ["prism-code-editor", "pce-wrapper", "pce-overlays"].map(
    (name) => Object.assign(document.createElement("div"), { className: name }),
  ) as [HTMLDivElement, HTMLDivElement, HTMLDivElement];
  const textarea = document.createElement("textarea");
  textarea.className = "pce-textarea";
  for (const name of ["autocapitalize", "autocomplete", "autocorrect"])
    textarea.setAttribute(name, "off");
  textarea.spellcheck = false;
  overlays.append(textarea);
  wrapper.append(overlays);
  container.append(wrapper);
  return { container, wrapper, overlays, textarea };
}

export function createSurface(given: EditorOptions, ...extensions: EditorExtension[]): Surface {
  const { container, wrapper, overlays, textarea } = parts();
  const options = { ...given };
  const listeners = new Map<string, Set<Listener>>();
  const rows = new Rows(container, wrapper, textarea, overlays);
  let pieces: readonly Piece[] = [];
  let tokens: Token[] = [];
  let value = "";
  let activeLine = 1;
  let isFocused = false;
  let isHeard = true;

  const tell = (name: string, ...told: unknown[]) => {
    for (const listener of listeners.get(name) ?? []) listener.apply(self, told as never[]);
  };
  const getSelection = (): InputSelection => [
    textarea.selectionStart,
    textarea.selectionEnd,
    textarea.selectionDirection,
  ];
  const look = ([start, end] = getSelection()) => {
    const names = [
      `prism-code-editor language-${options.language} show-line-numbers pce-nowrap`,
      `pce-${start < end ? "has" : "no"}-selection`,
      isFocused ? "pce-focus" : "",
      options.readOnly ? "pce-readonly" : "",
    ];
    const className = names.filter(Boolean).join(" ");
    if (container.className !== className) container.className = className;
  };
  const select = (isForced: boolean) => {
    if (!isForced && !isHeard) return;
    const selection = getSelection();
    activeLine = numLines(value, 0, selection[selection[2] === "backward" ? 0 : 1]);
    rows.activate(activeLine);
    look(selection);
    tell("selectionChange", selection, value);
  };
  const update = () => {
    value = textarea.value;
    const language = value.length > MOST_IN_COLOUR ? "plain" : options.language;
    const isSame = container.dataset.colours === language;
    container.dataset.colours = language;
    pieces = piecesOf(value, language, isSame ? pieces : []);
    tokens = pieces.map(({ token }) => token);
    tell("tokenize", tokens, language, value);
    rows.show(pieces, value, options.tabSize ?? 2);
    tell("update", value);
    select(true);
    // The browser tells of the selection once more, and later.
    if (isHeard) setTimeout(() => setTimeout(() => (isHeard = true)));
    isHeard = false;
  };
  const setOptions = (change: Partial<EditorOptions>) => {
    Object.assign(options, change);
    textarea.setAttribute("aria-readonly", String(options.readOnly ?? false));
    textarea.inputMode = options.readOnly ? "none" : "";
    look();
  };

  const self: Surface = {
    container,
    wrapper,
    textarea,
    lines: rows.all,
    options,
    extensions: {},
    inputCommandMap: {},
    keyCommandMap: {},
    get activeLine() {
      return activeLine;
    },
    get value() {
      return value;
    },
    get focused() {
      return isFocused;
    },
    get tokens() {
      return tokens;
    },
    setOptions,
    update,
    getSelection,
    numberLines: rows.number,
    addExtensions: (...more) => {
      for (const extension of more)
        if (typeof extension === "function") extension(self, options);
        else extension.update(self, options);
    },
    on: (name, listener) => {
      const known = listeners.get(name) ?? new Set();
      listeners.set(name, known.add(listener as Listener));
      return () => known.delete(listener as Listener);
    },
    remove: () => {
      rows.stop();
      container.remove();
    },
  };
  listen(self, update, select, (focused) => {
    isFocused = focused;
    look();
  });
  container.style.tabSize = String(options.tabSize ?? 2);
  textarea.value = options.value;
  textarea.selectionEnd = 0;
  setOptions({});
  self.addExtensions(...extensions);
  update();
  return self;
}

function stop(event: Event): void {
  event.preventDefault();
  event.stopImmediatePropagation();
}

function listen(
  editor: Surface,
  update: () => void,
  select: (isForced: boolean) => void,
  focus: (isFocused: boolean) => void,
): void {
  const { textarea, keyCommandMap, inputCommandMap, options, getSelection } = editor;
  const onDocument = () => select(false);
  textarea.addEventListener("keydown", (event) => {
    if (keyCommandMap[event.key]?.(event, getSelection(), editor.value)) stop(event);
  });
  textarea.addEventListener("beforeinput", (event) => {
    const { inputType, data } = event;
    const run = inputType === "insertText" && data ? inputCommandMap[data] : null;
    if (options.readOnly || run?.(event, getSelection(), editor.value)) stop(event);
  });
  textarea.addEventListener("input", update);
  textarea.addEventListener("blur", () => {
    document.removeEventListener("selectionchange", onDocument);
    focus(false);
  });
  textarea.addEventListener("focus", () => {
    document.addEventListener("selectionchange", onDocument);
    focus(true);
  });
  textarea.addEventListener("selectionchange", (event) => {
    select(!event.isTrusted);
    stop(event);
  });
}
