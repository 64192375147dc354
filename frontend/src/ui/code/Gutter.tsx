import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useState } from "react";
import { SeverityIcon } from "../SeverityIcon";
import { Tooltip } from "../Tooltip";
import type { CodeModel, CodeState } from "./CodeModel";
import { hasInner, lineAt } from "./folding";
import { type PlacedMark, worst } from "./marks";
import { LINE_HEIGHT } from "./rows";

/** Lines beside which something is drawn: those in sight, and some around them. */
const STEP = 40;

/** Beside the numbers of lines: what is said of them, and what folds them. */
export function Gutter({ model, state }: { model: CodeModel; state: CodeState }) {
  const first = useFirst(model.editor.container);
  const { shown, lines, folds, marks } = state;
  const said = new Map<number, PlacedMark[]>();
  for (const mark of marks) {
    const line = lineAt(shown.starts, mark.from);
    said.set(line, [...(said.get(line) ?? []), mark]);
  }
  return (
    <div className="code-gutter">
      {shown.lines.slice(first, first + 5 * STEP).map((line, at) => {
        const here = said.get(line);
        const canFold = hasInner(lines, line);
        if (!here && !canFold) return null;
        return (
          <div key={line} className="code-beside" style={{ top: `${first + at}lh` }}>
            {here ? <Said marks={here} /> : null}
            {canFold ? (
              <Fold line={line} isFolded={folds.has(line)} onFold={() => model.fold(line)} />
            ) : null}
          </div>
        );
      })}
    </div>
  );
}

function useFirst(box: HTMLElement): number {
  const [first, setFirst] = useState(0);
  useEffect(() => {
    const look = () =>
      setFirst(Math.max(0, Math.floor(box.scrollTop / LINE_HEIGHT / STEP) - 1) * STEP);
    box.addEventListener("scroll", look, { passive: true });
    return () => box.removeEventListener("scroll", look);
  }, [box]);
  return first;
}

function Said({ marks }: { marks: readonly PlacedMark[] }) {
  return (
    <Tooltip side="right" text={marks.map(({ message }) => message).join("\n")}>
      <span className="code-sign">
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
