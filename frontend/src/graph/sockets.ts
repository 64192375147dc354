/** Where edges end at the bottom and the top of boxes: learning below, ties between a node and its follower. Pure. */
import type { RouteEdge } from "./routes";
import type { Box } from "./shapes";

export interface Socket {
  key: string;
  port: string;
  isTarget: boolean;
  isTie: boolean;
  side: "top" | "bottom";
  x: number;
}

const TIE_LEFT = 28;
const TIE_APART = 30;
const SOCKET_APART = 26;
const SOCKET_RIGHT = 26;
const MIN_APART = 15;

/**
 * Of every box, from left to right, in an order in which lines of one box do not cross each other.
 *
 * @param scale how far apart they stand, against the ends at whole cards
 */
export function planSockets(
  boxes: ReadonlyMap<string, Box>,
  edges: readonly RouteEdge[],
  scale = 1,
): Map<string, Socket[]> {
  const found = new Map<string, Socket[]>();
  const add = (node: string, socket: Socket) => {
    const list = found.get(node);
    if (list) list.push(socket);
    else found.set(node, [socket]);
  };
  planTies(boxes, edges, add, scale);
  planLearning(boxes, edges, found, add, scale);
  return found;
}

type Add = (node: string, socket: Socket) => void;

/** Ties stand below each other: at the top of the follower, and at the same places of its leader. */
function planTies(
  boxes: ReadonlyMap<string, Box>,
  edges: readonly RouteEdge[],
  add: Add,
  scale: number,
): void {
  const place = (count: number) => (TIE_LEFT + TIE_APART * count) * scale;
  const counts = new Map<string, number>();
  for (const edge of edges) {
    if (edge.kind !== "tie" || edge.follower === null) continue;
    const { follower } = edge;
    const leader = edge.source === follower ? edge.target : edge.source;
    const [low, high] = [boxes.get(follower), boxes.get(leader)];
    if (!low || !high) continue;
    const count = counts.get(follower) ?? 0;
    counts.set(follower, count + 1);
    const x = Math.min(place(count), low.width - 14);
    const above = low.x + x - high.x;
    const isBelow = above >= 12 && above <= high.width - 12;
    const key = edge.key;
    const own = { key, isTie: true } as const;
    const [lowPort, highPort] =
      edge.source === follower
        ? [edge.sourcePort, edge.targetPort]
        : [edge.targetPort, edge.sourcePort];
    add(follower, { ...own, port: lowPort, isTarget: edge.target === follower, side: "top", x });
    add(leader, {
      ...own,
      port: highPort,
      isTarget: edge.target === leader,
      side: "bottom",
      x: isBelow ? above : place(count),
    });
  }
}

/**
 * What goes to the left stands left, what goes to the right stands right; of several on one side the nearest is the
 * outermost, as its track is the highest.
 */
function planLearning(
  boxes: ReadonlyMap<string, Box>,
  edges: readonly RouteEdge[],
  found: ReadonlyMap<string, Socket[]>,
  add: Add,
  scale: number,
): void {
  const [most, least] = [SOCKET_APART * scale, MIN_APART * scale];
  const right = SOCKET_RIGHT * scale;
  const ends = new Map<string, { key: string; port: string; isTarget: boolean; away: number }[]>();
  const middle = (box: Box) => box.x + box.width / 2;
  for (const edge of edges) {
    const [from, to] = [boxes.get(edge.source), boxes.get(edge.target)];
    if (edge.kind !== "learning" || !from || !to) continue;
    const away = middle(to) - middle(from);
    const leaving = { key: edge.key, port: edge.sourcePort, isTarget: false, away };
    const coming = { key: edge.key, port: edge.targetPort, isTarget: true, away: -away };
    ends.set(edge.source, [...(ends.get(edge.source) ?? []), leaving]);
    ends.set(edge.target, [...(ends.get(edge.target) ?? []), coming]);
  }
  for (const [node, list] of ends) {
    const box = boxes.get(node) as Box;
    const ties = (found.get(node) ?? []).filter(({ side }) => side === "bottom");
    const from = Math.max(0, ...ties.map(({ x }) => x));
    const sorted = list.toSorted((a, b) => rank(a.away) - rank(b.away));
    const room = box.width - right - from - least;
    const apart =
      sorted.length < 2 ? most : Math.max(least, Math.min(most, room / (sorted.length - 1)));
    for (const [index, { key, port, isTarget }] of sorted.entries()) {
      const x = Math.round(box.width - right - apart * (sorted.length - 1 - index));
      add(node, { key, port, isTarget, isTie: false, side: "bottom", x });
    }
  }
}

function rank(away: number): number {
  return away <= 0 ? -1e6 - away : 1e6 - away;
}
