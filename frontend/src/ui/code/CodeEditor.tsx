import { useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from "react";
import "@/styles/code.css";
import { CodeModel } from "./CodeModel";
import { Completions } from "./Completions";
import type { Word } from "./completions";
import { Gutter } from "./Gutter";
import { MarksOfLine, MarkTip } from "./MarkTip";
import { type Mark, placeOf } from "./marks";
import { Painted } from "./Painted";
import { SearchPanel } from "./SearchPanel";
import type { Language } from "./tokens";
import { useCaret } from "./useCaret";
import { useCompletions } from "./useCompletions";
import { useKeys } from "./useKeys";
import { useSearch } from "./useSearch";
import { useVisibleLines } from "./useVisibleLines";

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
  const area = useRef<HTMLTextAreaElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const [model] = useState(
    () => new CodeModel({ text: value, language, onChange: (text) => change.current(text) }),
  );
  const [isFocused, setFocused] = useState(false);
  const state = useSyncExternalStore(model.subscribe, model.get);

  useLayoutEffect(() => (area.current ? model.attach(area.current) : undefined), [model]);
  useEffect(() => model.setText(value), [model, value]);
  useEffect(() => model.setMarks(marks), [model, marks]);
  useEffect(() => {
    if (!goTo) return;
    const { lines, shown } = model.state;
    const texts = lines.map(({ text }) => text);
    model.select(placeOf(texts, shown.starts, goTo.line, goTo.column));
    area.current?.focus({ preventScroll: true });
  }, [model, goTo]);

  const visible = useVisibleLines(scroller, state.shown.lines.length);
  const caret = useCaret(scroller, state, visible);
  const search = useSearch(model, state, area);
  const completions = useCompletions(model, language === "python" ? words : null);
  const onKeyDown = useKeys(model, [completions.onKey, search.onKey]);

  return (
    <div className="code-editor" style={{ minHeight }}>
      <div ref={scroller} className="code-scroller">
        <div className="code-page">
          <Gutter model={model} state={state} visible={visible} />
          <div className="code-body">
            <Painted state={state} visible={visible} hits={search.hits} caret={caret} />
            <textarea
              ref={area}
              aria-label={label}
              className="code-area"
              wrap="off"
              readOnly={isReadonly}
              spellCheck={false}
              autoCapitalize="off"
              autoComplete="off"
              autoCorrect="off"
              onKeyDown={onKeyDown}
              onCopy={(event) => model.copy(event.nativeEvent)}
              onCut={(event) => model.copy(event.nativeEvent)}
              onFocus={() => setFocused(true)}
              onBlur={() => {
                setFocused(false);
                completions.close();
              }}
              {...completions.ofArea}
            />
            <MarkTip state={state} area={area} />
          </div>
        </div>
      </div>
      {search.isOpen ? <SearchPanel search={search} isReadonly={isReadonly} /> : null}
      <Completions completions={completions} anchor={caret} />
      {isFocused ? <MarksOfLine state={state} /> : null}
    </div>
  );
}
