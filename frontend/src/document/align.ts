/** New places for boxes that are to stand in one line, or at even distances. Pure. */
import { areaOf, type Box } from "./boxes";
import type { Point } from "./types";

export type Alignment = "left" | "center" | "right" | "top" | "middle" | "bottom";
export type Direction = "across" | "down";

export function align(boxes: readonly Box[], by: Alignment): Record<string, Point> {
  const area = areaOf(boxes);
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
  const area = areaOf(boxes);
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
