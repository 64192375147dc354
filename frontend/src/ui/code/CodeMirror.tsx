import { useEffect, useRef, useState } from "react";
import type { CodeEditorProps } from "../CodeEditor";
import { createEditor, type EditorHandle } from "./editor";

/** Text from outside is taken as the smallest change, so that the cursor stays. */
export function CodeMirror(props: CodeEditorProps) {
  const { label, language, value, minHeight, isReadonly = false, marks, goTo } = props;
  const host = useRef<HTMLDivElement>(null);
  const handle = useRef<EditorHandle | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [messages, setMessages] = useState("");

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; later values come in below
  useEffect(() => {
    if (!host.current) return;
    const editor = createEditor(host.current, {
      label,
      language,
      text: value,
      isReadonly,
      words: () => latest.current.words ?? [],
      onChange: (text) => latest.current.onChange(text),
      onLine: setMessages,
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

  return (
    <div className="flex h-full flex-col has-[.cm-search]:min-h-52" style={{ minHeight }}>
      <div
        ref={host}
        className="min-h-0 flex-1"
        style={{ maxHeight: minHeight && "60vh", minHeight }}
      />
      <p role="status" className="border-line border-t bg-raised px-2 py-0.5 text-xs empty:hidden">
        {messages}
      </p>
    </div>
  );
}
