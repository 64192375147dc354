/** Lines in which a dragged box stands with others, and how far it is from the nearest ones. Pure. */

import type { Point } from "@/document/types";
import { areaAround } from "./geometry";
import type { Box } from "./shapes";

export interface Guide {
  axis: "x" | "y";
  at: number;
  from: number;
  to: number;
}

export interface Guided {
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
  const area = areaAround(moved);
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

/** New places for boxes that are to stand in one line, or at even distances. Pure. */
export type Alignment = "left" | "center" | "right" | "top" | "middle" | "bottom";
export type Direction = "across" | "down";

export function align(boxes: readonly Box[], by: Alignment): Record<string, Point> {
  const area = areaAround(boxes);
  if (!area) return {};
  const { left, right, top, bottom } = area;
  const place: Record<Alignment, (box: Box) => Point> = {
    left: ({ y }) => [left, y],
    center: ({ y, width }) => [(left + right - width) / 2, y],
    right: ({ y, width }) => [right - width, y],
    top: ({ x }) => [x, top],
    middle: ({ x, height }) => [x, (top + bottom - height) / 2],
    bottom: ({ x, height }) => [x, bottom - height],
  };
  return rounded(boxes, place[by]);
}

/** The outermost stay; the gaps between neighbours become equal. */
export function distribute(boxes: readonly Box[], along: Direction): Record<string, Point> {
  const area = areaAround(boxes);
  if (!area || boxes.length < 3) return {};
  const isAcross = along === "across";
  const start = (box: Box) => (isAcross ? box.x : box.y);
  const size = (box: Box) => (isAcross ? box.width : box.height);
  const ordered = boxes.toSorted((a, b) => start(a) - start(b));
  const used = boxes.reduce((sum, box) => sum + size(box), 0);
  const room = isAcross ? area.right - area.left : area.bottom - area.top;
  const gap = (room - used) / (boxes.length - 1);
  const starts = new Map<string, number>();
  let at = isAcross ? area.left : area.top;
  for (const box of ordered) {
    starts.set(box.id, at);
    at += size(box) + gap;
  }
  return rounded(boxes, ({ id, x, y }) =>
    isAcross ? [starts.get(id) ?? x, y] : [x, starts.get(id) ?? y],
  );
}

function rounded(boxes: readonly Box[], place: (box: Box) => Point): Record<string, Point> {
  return Object.fromEntries(
    boxes.map((box) => {
      const [x, y] = place(box);
      return [box.id, [Math.round(x), Math.round(y)] as Point];
    }),
  );
}
