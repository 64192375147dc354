/** Which lines a cut goes through. */

export interface Cut {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

/** Pixels between two points of a line that are looked at. */
const STEP = 8;

/** Keys of the edges whose lines on the screen a cut crosses. */
export function crossedEdges(cut: Cut): string[] {
  const keys: string[] = [];
  for (const edge of document.querySelectorAll(".react-flow__edge")) {
    const key = edge.getAttribute("data-id");
    const line = edge.querySelector<SVGPathElement>(".loop-edge");
    if (key && line && isCrossed(line, cut)) keys.push(key);
  }
  return keys;
}

function isCrossed(line: SVGPathElement, cut: Cut): boolean {
  const matrix = line.getScreenCTM();
  if (!matrix) return false;
  const length = line.getTotalLength();
  const steps = Math.max(1, Math.ceil((length * matrix.a) / STEP));
  let before = line.getPointAtLength(0).matrixTransform(matrix);
  for (let step = 1; step <= steps; step += 1) {
    const now = line.getPointAtLength((length * step) / steps).matrixTransform(matrix);
    if (crosses(cut, { x1: before.x, y1: before.y, x2: now.x, y2: now.y })) return true;
    before = now;
  }
  return false;
}

/** Whether two stretches meet. */
export function crosses(a: Cut, b: Cut): boolean {
  const side = (line: Cut, x: number, y: number) =>
    Math.sign((line.x2 - line.x1) * (y - line.y1) - (line.y2 - line.y1) * (x - line.x1));
  return side(a, b.x1, b.y1) !== side(a, b.x2, b.y2) && side(b, a.x1, a.y1) !== side(b, a.x2, a.y2);
}
