import { useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from "react";
import { createPortal } from "react-dom";
import "prism-code-editor/layout.css";
import "prism-code-editor/search.css";
import "prism-code-editor/autocomplete.css";
import "@/styles/code.css";
import { addOverlay } from "prism-code-editor/utils";
import { listBesideCursor } from "./besideCursor";
import { CodeModel } from "./CodeModel";
import { offerWords, type Word } from "./completions";
import { addKeys, keepCursorInSight, type Language, libraryEditor } from "./editor";
import { Gutter } from "./Gutter";
import { MOST_IN_COLOUR } from "./highlight";
import { MarksOfLine, MarkTip } from "./MarkTip";
import { type Mark, placeOf } from "./marks";
import { Spots } from "./Spots";

interface CodeEditorProps {
  label: string;
  language: Language;
  value: string;
  minHeight?: string;
  isReadonly?: boolean;
  marks?: readonly Mark[];
  /** Names that code may use, offered while it is typed. */
  words?: readonly Word[];
  /** Scrolls to this line when it changes. */
  goTo?: { line: number; column: number; request: number } | null;
  onChange: (text: string) => void;
}

const NO_WORDS: readonly Word[] = [];
const NO_MARKS: readonly Mark[] = [];

/** A text editor. Text from outside is taken as the smallest change, so that the cursor stays. */
export function CodeEditor(props: CodeEditorProps) {
  return <Editor key={`${props.language} ${props.label}`} {...props} />;
}

/** What a library's editor is made of, once. */
function begin(label: string, language: Language, text: string, tell: (text: string) => void) {
  const model = new CodeModel(libraryEditor(label, language, text), tell);
  addKeys(model);
  const layer = document.createElement("div");
  layer.className = "code-layer";
  addOverlay(model.editor, layer);
  return { model, layer };
}

function Editor({
  label,
  language,
  value,
  minHeight,
  isReadonly = false,
  marks = NO_MARKS,
  words = NO_WORDS,
  goTo,
  onChange,
}: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const [{ model, layer }] = useState(() =>
    begin(label, language, value, (text) => change.current(text)),
  );
  const [isFocused, setFocused] = useState(false);
  const state = useSyncExternalStore(model.subscribe, model.get);
  const { editor } = model;

  useLayoutEffect(() => {
    host.current?.append(editor.container);
    return () => editor.remove();
  }, [editor]);
  useEffect(() => {
    const listen = new AbortController();
    const { signal } = listen;
    editor.textarea.addEventListener("focus", () => setFocused(true), { signal });
    editor.textarea.addEventListener("blur", () => setFocused(false), { signal });
    return () => listen.abort();
  }, [editor]);
  useEffect(() => keepCursorInSight(editor), [editor]);
  useEffect(() => listBesideCursor(editor), [editor]);
  useLayoutEffect(() => editor.setOptions({ readOnly: isReadonly }), [editor, isReadonly]);
  useEffect(() => model.setText(value), [model, value]);
  useEffect(() => model.setMarks(marks), [model, marks]);
  useEffect(() => offerWords(editor, words), [editor, words]);
  useEffect(() => {
    if (!goTo) return;
    const { lines, shown } = model.state;
    model.select(placeOf(lines, shown.starts, goTo.line, goTo.column));
    model.editor.textarea.focus({ preventScroll: true });
  }, [model, goTo]);

  return (
    <div className="code-editor" style={{ minHeight, maxHeight: minHeight && "60vh" }}>
      <div ref={host} className="code-host" />
      {createPortal(
        <>
          <Gutter model={model} state={state} />
          <Spots state={state} />
          <MarkTip state={state} area={editor.textarea} />
        </>,
        layer,
      )}
      <MarksOfLine state={state} isFocused={isFocused} />
      <p role="status" className="code-said">
        {isFocused && state.isTabFree
          ? "Tab goes on to what comes next. Control+M lets it indent again."
          : null}
      </p>
      {language !== "plain" && state.shown.text.length > MOST_IN_COLOUR ? (
        <p className="code-said">Too long for colours: they are back below 200,000 characters.</p>
      ) : null}
    </div>
  );
}
