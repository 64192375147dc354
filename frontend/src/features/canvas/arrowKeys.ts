/** Where an arrow key leads from a box or an edge of the graph. Pure; knows nothing of the page. */

export interface StopBox {
  id: string;
  /** The middle of the box. */
  x: number;
  y: number;
}

export interface StopEdge {
  key: string;
  source: string;
  target: string;
}

/** What has the focus, or is to have it. */
export interface Stop {
  kind: "node" | "edge";
  id: string;
}

export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

const WAYS: Record<Arrow, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** A box to the side counts as far away as one twice as far ahead. */
const ASIDE = 2;

export function isArrow(key: string): key is Arrow {
  return key in WAYS;
}

/** The nearest box in that direction, or null. */
export function boxTowards(boxes: readonly StopBox[], from: string, arrow: Arrow): Stop | null {
  const start = boxes.find(({ id }) => id === from);
  if (!start) return null;
  const [wayX, wayY] = WAYS[arrow];
  let nearest: { id: string; far: number } | null = null;
  for (const { id, x, y } of boxes) {
    const ahead = (x - start.x) * wayX + (y - start.y) * wayY;
    const aside = Math.abs((x - start.x) * wayY) + Math.abs((y - start.y) * wayX);
    const far = ahead + ASIDE * aside;
    if (ahead > 0 && (nearest === null || far < nearest.far)) nearest = { id, far };
  }
  return nearest && { kind: "node", id: nearest.id };
}

/** From a box to its first edge: those that leave lie to the right, those that come in to the left. */
export function edgeOf(edges: readonly StopEdge[], node: string, arrow: Arrow): Stop | null {
  const end = arrow === "ArrowRight" ? "source" : arrow === "ArrowLeft" ? "target" : null;
  const found = end && edges.find((edge) => edge[end] === node);
  return found ? { kind: "edge", id: found.key } : null;
}

/** From an edge on: left and right to its ends, up and down over all edges that share one of them. */
export function fromEdge(edges: readonly StopEdge[], key: string, arrow: Arrow): Stop | null {
  const edge = edges.find((one) => one.key === key);
  if (!edge) return null;
  if (arrow === "ArrowLeft") return { kind: "node", id: edge.source };
  if (arrow === "ArrowRight") return { kind: "node", id: edge.target };
  const near = edges.filter(
    ({ source, target }) => source === edge.source || target === edge.target,
  );
  const next = near[near.indexOf(edge) + (arrow === "ArrowDown" ? 1 : -1)];
  return next ? { kind: "edge", id: next.key } : null;
}
