/** The lines of edges: a soft curve, or straight pieces with rounded corners. Pure. */
import type { Point } from "./shapes";

const REACH = 28;
const FURTHEST = 120;
const RADIUS = 10;

/** @param bend how far it swings out, for edges between the same two ports */
export function curvePath([sx, sy]: Point, [tx, ty]: Point, bend = 0): string {
  const [[outX, outY], [intoX, intoY]] = handlesOf([sx, sy], [tx, ty], bend);
  return `M${sx},${sy} C${outX},${outY} ${intoX},${intoY} ${tx},${ty}`;
}

/** Points along the curve, as many as pieces plus one. */
export function curvePoints(from: Point, to: Point, bend: number, pieces: number): Point[] {
  const [out, into] = handlesOf(from, to, bend);
  return Array.from({ length: pieces + 1 }, (_, index) => {
    const share = index / pieces;
    const rest = 1 - share;
    const at = (axis: 0 | 1) =>
      rest ** 3 * from[axis] +
      3 * rest ** 2 * share * out[axis] +
      3 * rest * share ** 2 * into[axis] +
      share ** 3 * to[axis];
    return [at(0), at(1)];
  });
}

function handlesOf([sx, sy]: Point, [tx, ty]: Point, bend: number): [Point, Point] {
  const reach = Math.max(REACH, Math.min((tx - sx) * 0.5, FURTHEST));
  return [
    [sx + reach, sy + bend],
    [tx - reach, ty + bend],
  ];
}

export function roundedPath(points: readonly Point[]): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  let path = `M${first[0]},${first[1]}`;
  let before = first;
  for (const [index, corner] of rest.entries()) {
    const after = rest[index + 1];
    if (!after) return `${path} L${corner[0]},${corner[1]}`;
    const into = toward(corner, before);
    const out = toward(corner, after);
    path += ` L${into[0]},${into[1]} Q${corner[0]},${corner[1]} ${out[0]},${out[1]}`;
    before = corner;
  }
  return path;
}

function toward(from: Point, to: Point): Point {
  const dx = to[0] - from[0];
  const dy = to[1] - from[1];
  const length = Math.hypot(dx, dy);
  if (length === 0) return from;
  const step = Math.min(RADIUS, length / 2);
  return [from[0] + (dx / length) * step, from[1] + (dy / length) * step];
}
