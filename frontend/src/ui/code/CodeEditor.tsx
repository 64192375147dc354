import { useEffect, useRef } from "react";
import type { Word } from "./completePython";
import { createEditor, type EditorHandle, type Language, type Mark } from "./editor";

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

/** A text editor. Text from outside is taken as the smallest change, so that the cursor stays. */
export function CodeEditor({
  label,
  language,
  value,
  minHeight,
  isReadonly = false,
  marks,
  words = NO_WORDS,
  goTo,
  onChange,
}: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const handle = useRef<EditorHandle | null>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const known = useRef(words);
  known.current = words;

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; later values come in below
  useEffect(() => {
    if (!host.current) return;
    const editor = createEditor(host.current, {
      label,
      language,
      text: value,
      isReadonly,
      words: () => known.current,
      onChange: (text) => change.current(text),
    });
    handle.current = editor;
    return () => editor.destroy();
  }, [label, language]);

  useEffect(() => handle.current?.setText(value), [value]);
  useEffect(() => handle.current?.setReadonly(isReadonly), [isReadonly]);
  useEffect(() => handle.current?.setMarks(marks ?? []), [marks]);
  useEffect(() => {
    if (goTo) handle.current?.goTo(goTo.line, goTo.column);
  }, [goTo]);

  return <div ref={host} className="code-editor h-full overflow-auto" style={{ minHeight }} />;
}
