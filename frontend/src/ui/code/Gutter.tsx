import { ChevronDown, ChevronRight } from "lucide-react";
import { SeverityIcon } from "../SeverityIcon";
import { Tooltip } from "../Tooltip";
import type { CodeModel, CodeState } from "./CodeModel";
import { foldEnd, lineAt } from "./folding";
import { type PlacedMark, worst } from "./marks";
import { LINE_HEIGHT, PADDING, type Visible } from "./useVisibleLines";

interface GutterProps {
  model: CodeModel;
  state: CodeState;
  visible: Visible;
}

/** Numbers of lines, what is said of them, and what folds them. */
export function Gutter({ model, state, visible }: GutterProps) {
  const { shown, lines, folds, marks } = state;
  const texts = lines.map(({ text }) => text);
  const said = new Map<number, PlacedMark[]>();
  for (const mark of marks) {
    const line = lineAt(shown.starts, mark.from);
    said.set(line, [...(said.get(line) ?? []), mark]);
  }
  const current = lineAt(shown.starts, state.selected[1]);
  const seen = shown.lines.slice(visible.first, visible.last);
  const digits = Math.max(2, String(lines.length).length);
  return (
    <div className="code-gutter" style={{ width: `calc(${digits}ch + 40px)` }}>
      <div style={{ paddingTop: PADDING + visible.first * LINE_HEIGHT }}>
        {seen.map((number) => (
          <div key={number} className="code-number" data-current={number === current || undefined}>
            <Said marks={said.get(number)} />
            <span aria-hidden="true">{number + 1}</span>
            {foldEnd(texts, number) > number ? (
              <Fold line={number} isFolded={folds.has(number)} onFold={() => model.fold(number)} />
            ) : (
              <span className="w-4" />
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

function Said({ marks }: { marks: readonly PlacedMark[] | undefined }) {
  if (!marks) return <span className="size-3.5" />;
  return (
    <Tooltip side="right" text={marks.map(({ message }) => message).join("\n")}>
      <span className="size-3.5">
        <SeverityIcon severity={worst(marks)} size={13} />
      </span>
    </Tooltip>
  );
}

interface FoldProps {
  line: number;
  isFolded: boolean;
  onFold: () => void;
}

/** By the pointer; the keys that do it are the text's own. */
function Fold({ line, isFolded, onFold }: FoldProps) {
  const Icon = isFolded ? ChevronRight : ChevronDown;
  return (
    <button
      type="button"
      tabIndex={-1}
      className="code-fold"
      aria-label={`${isFolded ? "Unfold" : "Fold"} line ${line + 1}`}
      aria-expanded={!isFolded}
      onPointerDown={(event) => event.preventDefault()}
      onClick={onFold}
    >
      <Icon size={12} aria-hidden="true" />
    </button>
  );
}
