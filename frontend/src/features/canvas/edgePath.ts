/**
 * The line of an edge. Forward it is a soft curve; backward (learning flows against the data) it runs
 * in a lane below both boxes, so that it does not cross them. Pure.
 */
export interface Ends {
  sourceX: number;
  sourceY: number;
  targetX: number;
  targetY: number;
}

export interface EdgeLine {
  path: string;
  labelX: number;
  labelY: number;
}

const REACH = 28;
const RADIUS = 10;

export function edgeLine(ends: Ends, laneY: number | null, spread: number): EdgeLine {
  const { sourceX, sourceY, targetX, targetY } = ends;
  if (laneY === null) {
    const gap = targetX - sourceX;
    const reach = Math.max(REACH, Math.min(gap * 0.5, 160));
    return {
      path: `M${sourceX},${sourceY} C${sourceX + reach},${sourceY} ${targetX - reach},${targetY} ${targetX},${targetY}`,
      labelX: (sourceX + targetX) / 2,
      labelY: (sourceY + targetY) / 2,
    };
  }
  const right = sourceX + REACH + spread;
  const left = targetX - REACH - spread;
  const y = laneY + spread;
  return {
    path: rounded([
      [sourceX, sourceY],
      [right, sourceY],
      [right, y],
      [left, y],
      [left, targetY],
      [targetX, targetY],
    ]),
    labelX: (left + right) / 2,
    labelY: y,
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
