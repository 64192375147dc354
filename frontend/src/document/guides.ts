/** Lines in which a dragged box stands with others, and how far it is from the nearest ones. Pure. */
import { areaOf, type Box } from "./boxes";

export interface Guide {
  /** A line down the canvas at x, or across it at y, from one box to the other. */
  axis: "x" | "y";
  at: number;
  from: number;
  to: number;
}

export interface Guided {
  /** How far the boxes are to move so that they stand in line. */
  by: [number, number];
  guides: Guide[];
}

const NONE: Guided = { by: [0, 0], guides: [] };

interface Span {
  low: number;
  high: number;
}

const lines = ({ low, high }: Span) => [low, (low + high) / 2, high];

/** @param reach how near a line counts, on the canvas */
export function guide(moved: readonly Box[], others: readonly Box[], reach: number): Guided {
  const area = areaOf(moved);
  if (!area) return NONE;
  const across = { low: area.left, high: area.right };
  const down = { low: area.top, high: area.bottom };
  const x = nearest(across, others.map(spanX), reach);
  const y = nearest(down, others.map(spanY), reach);
  const by: [number, number] = [x ?? 0, y ?? 0];
  const at = (span: Span, offset: number) => ({
    low: span.low + offset,
    high: span.high + offset,
  });
  return {
    by,
    guides: [
      ...(x === null ? [] : found("x", at(across, by[0]), at(down, by[1]), others, spanX, spanY)),
      ...(y === null ? [] : found("y", at(down, by[1]), at(across, by[0]), others, spanY, spanX)),
    ],
  };
}

const spanX = ({ x, width }: Box): Span => ({ low: x, high: x + width });
const spanY = ({ y, height }: Box): Span => ({ low: y, high: y + height });

/** The least offset that puts one of our lines on one of theirs. */
function nearest(own: Span, others: readonly Span[], reach: number): number | null {
  let best: number | null = null;
  for (const other of others) {
    // Left with left, middle with middle, right with right: others look like chance.
    for (const [index, line] of lines(other).entries()) {
      const offset = line - (lines(own)[index] ?? line);
      if (Math.abs(offset) <= reach && (best === null || Math.abs(offset) < Math.abs(best))) {
        best = offset;
      }
    }
  }
  return best;
}

function found(
  axis: Guide["axis"],
  own: Span,
  beside: Span,
  others: readonly Box[],
  spanOf: (box: Box) => Span,
  besideOf: (box: Box) => Span,
): Guide[] {
  const guides = new Map<number, Guide>();
  for (const box of others) {
    for (const [index, line] of lines(spanOf(box)).entries()) {
      if (Math.abs(line - (lines(own)[index] ?? Number.NaN)) > 0.5) continue;
      const { low, high } = besideOf(box);
      const old = guides.get(line) ?? { axis, at: line, from: beside.low, to: beside.high };
      guides.set(line, { ...old, from: Math.min(old.from, low), to: Math.max(old.to, high) });
    }
  }
  return [...guides.values()];
}
