import { memo, type ReactNode, type RefObject } from "react";
import { bracketsAt } from "./brackets";
import type { CodeState } from "./CodeModel";
import { inShown, lineAt } from "./folding";
import { repeatsOf } from "./repeats";
import type { Hit } from "./search";
import type { Line } from "./tokens";
import { LINE_HEIGHT, PADDING, type Visible } from "./useVisibleLines";

interface PaintedProps {
  state: CodeState;
  visible: Visible;
  hits: readonly Hit[];
  caret: RefObject<HTMLElement | null>;
}

/** A piece of a line that is set off. */
interface Spot {
  from: number;
  to: number;
  look: string;
  /** Which of the marks it is. */
  said?: number;
}

/** The lines in their colours, below the area in which they are typed. The area is what is read aloud. */
export function Painted({ state, visible, hits, caret }: PaintedProps) {
  const { shown, lines, selected } = state;
  const seen = shown.lines.slice(visible.first, visible.last);
  const current = lineAt(shown.shownStarts, inShown(shown, selected[1])) - visible.first;
  const spots = spotsOf(state, seen, hits);
  return (
    <div
      className="code-lines"
      aria-hidden="true"
      style={{ height: 2 * PADDING + shown.lines.length * LINE_HEIGHT }}
    >
      <div className="code-longest">{longest(lines)}</div>
      <div style={{ paddingTop: PADDING + visible.first * LINE_HEIGHT }}>
        {seen.map((number, at) => (
          <Row
            key={number}
            state={state}
            number={number}
            spots={spots}
            caret={at === current ? caret : null}
          />
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  state: CodeState;
  number: number;
  spots: readonly Spot[];
  /** In the line where it is. */
  caret: RefObject<HTMLElement | null> | null;
}

function Row({ state, number, spots, caret }: RowProps) {
  const { lines, shown, folds, selected } = state;
  const line = lines[number];
  const start = shown.starts[number] ?? 0;
  if (!line) return null;
  const end = start + line.text.length;
  return (
    <div className="code-row" data-current={caret !== null || undefined}>
      {spots
        .filter(({ from, to }) => to >= start && from <= end)
        .map((spot) => (
          <SpotOf
            {...spot}
            key={`${spot.look} ${spot.said} ${spot.from} ${spot.to}`}
            text={line.text}
            from={Math.max(0, spot.from - start)}
            to={Math.min(line.text.length, spot.to - start)}
          />
        ))}
      {caret ? (
        <span className="code-spot">
          {line.text.slice(0, Math.max(0, selected[1] - start))}
          <span ref={caret} />
        </span>
      ) : null}
      <PaintedLine line={line} />
      {folds.has(number) ? <span className="code-folded">…</span> : null}
    </div>
  );
}

const PaintedLine = memo(function PaintedLine({ line }: { line: Line }) {
  const parts: ReactNode[] = line.tokens.map(({ kind, text }, at) =>
    kind === "plain" ? (
      text
    ) : (
      <span key={at} className={kind === "number" ? "code-digits" : `code-${kind}`}>
        {text}
      </span>
    ),
  );
  return <span className="code-line">{parts.length === 0 ? line.text : parts}</span>;
});

function SpotOf({ text, from, to, look, said }: Spot & { text: string }) {
  return (
    <span className="code-spot">
      {text.slice(0, from)}
      <span className={look} data-said={said}>
        {text.slice(from, to) || " "}
      </span>
    </span>
  );
}

/** What is set off in the lines that are seen. */
function spotsOf(state: CodeState, seen: readonly number[], hits: readonly Hit[]): Spot[] {
  const { lines, shown, selected, marks } = state;
  const first = shown.starts[seen[0] ?? 0] ?? 0;
  const last = seen.at(-1) ?? 0;
  const end = (shown.starts[last] ?? 0) + (lines[last]?.text.length ?? 0);
  const isSeen = ({ from, to }: { from: number; to: number }) => to >= first && from <= end;
  const [from, to] = selected;
  const found = from === to ? bracketsAt(lines, shown.starts, from) : null;
  const spots: Spot[] = [
    ...(found?.places ?? []).map((at) => ({
      from: at,
      to: at + 1,
      look: found?.isPaired ? "code-pair" : "code-alone",
    })),
    ...repeatsOf(state, first, end).map((at) => ({
      from: at,
      to: at + to - from,
      look: "code-same",
    })),
    ...hits.map((hit) => ({
      from: hit.from,
      to: hit.to,
      look: hit.from === from && hit.to === to ? "code-hit code-hit-now" : "code-hit",
    })),
    ...marks.map((mark, said) => ({
      from: mark.from,
      to: mark.to,
      look: `code-said-${mark.severity}`,
      said,
    })),
  ];
  return spots.filter(isSeen);
}

/** The line that is widest, as far as the number of its signs tells; signs of the east count for two. */
function longest(lines: readonly Line[]): string {
  let found = "";
  let most = -1;
  for (const { text } of lines) {
    if (text.length * 2 <= most) continue;
    const wide = text.length + (text.match(/[\u1100-\uffff]/g)?.length ?? 0);
    if (wide > most) [found, most] = [text, wide];
  }
  return found;
}
