/**
 * The line of an edge. Forward it is a soft curve; backward (learning flows against the data) it runs
 * in a lane below both boxes, so that it does not cross them. Pure.
 */
import type { Lane } from "./lanes";

export interface Ends {
  sourceX: number;
  sourceY: number;
  targetX: number;
  targetY: number;
}

export interface EdgeLine {
  path: string;
  /** The place at a share of the way on which a label may stand. */
  at: (share: number) => [number, number];
}

const REACH = 28;
const RADIUS = 10;

/**
 * @param lane where a backward edge runs
 * @param bend how far a forward edge swings out, for edges between the same two ports
 */
export function edgeLine(ends: Ends, lane: Lane | null, bend = 0): EdgeLine {
  return lane === null ? curve(ends, bend) : inLane(ends, lane);
}

function curve({ sourceX, sourceY, targetX, targetY }: Ends, bend: number): EdgeLine {
  const reach = Math.max(REACH, Math.min((targetX - sourceX) * 0.5, 160));
  const [outX, outY] = [sourceX + reach, sourceY + bend];
  const [intoX, intoY] = [targetX - reach, targetY + bend];
  const bezier = (share: number, a: number, b: number, c: number, d: number) => {
    const rest = 1 - share;
    return rest ** 3 * a + 3 * rest ** 2 * share * b + 3 * rest * share ** 2 * c + share ** 3 * d;
  };
  return {
    path: `M${sourceX},${sourceY} C${outX},${outY} ${intoX},${intoY} ${targetX},${targetY}`,
    at: (share) => [
      bezier(share, sourceX, outX, intoX, targetX),
      bezier(share, sourceY, outY, intoY, targetY),
    ],
  };
}

function inLane({ sourceX, sourceY, targetX, targetY }: Ends, lane: Lane): EdgeLine {
  const [right, left] = [sourceX + lane.out, targetX - lane.into];
  return {
    path: rounded([
      [sourceX, sourceY],
      [right, sourceY],
      [right, lane.y],
      [left, lane.y],
      [left, targetY],
      [targetX, targetY],
    ]),
    at: (share) => [right + (left - right) * share, lane.y],
  };
}

function rounded(points: [number, number][]): string {
  const [first, ...rest] = points as [[number, number], ...[number, number][]];
  let path = `M${first[0]},${first[1]}`;
  let before = first;
  for (const [index, corner] of rest.entries()) {
    const after = rest[index + 1];
    if (!after) {
      path += ` L${corner[0]},${corner[1]}`;
      break;
    }
    const into = toward(corner, before);
    const out = toward(corner, after);
    path += ` L${into[0]},${into[1]} Q${corner[0]},${corner[1]} ${out[0]},${out[1]}`;
    before = corner;
  }
  return path;
}

function toward(from: [number, number], to: [number, number]): [number, number] {
  const dx = to[0] - from[0];
  const dy = to[1] - from[1];
  const length = Math.hypot(dx, dy);
  if (length === 0) return from;
  const step = Math.min(RADIUS, length / 2);
  return [from[0] + (dx / length) * step, from[1] + (dy / length) * step];
}
