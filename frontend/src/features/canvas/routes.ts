/**
 * The ways of all edges of a graph together: lanes of their own, and labels on free ground, never on a box, a
 * port or another label. A label for which there is no room waits until its edge is pointed at. Pure.
 */
import { NODE_WIDTH, portTop } from "@/document/geometry";
import { type Ends, edgeLine } from "./edgePath";
import { textScale } from "./fit";
import { isBackward, type Lane, planLanes, type RouteBox } from "./lanes";

export interface RouteEdge {
  key: string;
  source: string;
  target: string;
  /** Rows of the two ports. */
  sourceRow: number;
  targetRow: number;
  /** As many characters as its label has at most; 0 for none. */
  characters: number;
}

export interface Route {
  lane: Lane | null;
  bend: number;
  /** Middle of the label, or null where it has no free place. */
  label: [number, number] | null;
}

export interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** What the label of the canvas measures: a character, what is around the text, the height. */
export const LABEL = { character: 7, padding: 16, height: 20 } as const;
/** Ports stick out of their box by half of their size. */
const PORT_REACH = 8;
const APART = 3;
const BEND = 28;
/** From the middle outwards. */
const SHARES = [0, 0.08, 0.16, 0.24, 0.32, 0.4, 0.46].flatMap((by) => [0.5 - by, 0.5 + by]);
/** Beside the line, where on it there is no room. */
const SHIFTS = [0, 14, 24, 36, 50, 66, 84].flatMap((by) => (by === 0 ? [0] : [-by, by]));

/** @param scale how much larger than in the layout text is drawn */
export function routeEdges(
  boxes: readonly RouteBox[],
  edges: readonly RouteEdge[],
  scale: number,
): Map<string, Route> {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const ways = edges.flatMap((edge) => {
    const [from, to] = [byId.get(edge.source), byId.get(edge.target)];
    return from && to ? [{ key: edge.key, edge, from, to }] : [];
  });
  const lanes = planLanes(
    boxes,
    ways.filter(({ from, to }) => isBackward(from, to)),
  );
  const taken = boxes.map(
    (box): Area => ({
      left: box.x - PORT_REACH,
      top: box.y,
      right: box.x + NODE_WIDTH + PORT_REACH,
      bottom: box.y + box.height,
    }),
  );
  const twins = new Map<string, number>();
  const routes = new Map<string, Route>();
  for (const { key, edge, from, to } of ways) {
    const lane = lanes.get(key) ?? null;
    const ports = `${edge.source} ${edge.sourceRow} ${edge.target} ${edge.targetRow}`;
    const twin = twins.get(ports) ?? 0;
    twins.set(ports, twin + 1);
    const bend = lane === null ? BEND * twin : 0;
    const line = edgeLine(endsOf(edge, from, to), lane, bend);
    const label = edge.characters > 0 ? freePlace(line.at, edge.characters, scale, taken) : null;
    if (label) taken.push(labelArea(label, edge.characters, scale));
    routes.set(key, { lane, bend, label });
  }
  return routes;
}

export function labelArea([x, y]: [number, number], characters: number, scale: number): Area {
  const width = characters * LABEL.character * scale + LABEL.padding;
  const height = LABEL.height * scale;
  return { left: x - width / 2, top: y - height / 2, right: x + width / 2, bottom: y + height / 2 };
}

function endsOf(edge: RouteEdge, from: RouteBox, to: RouteBox): Ends {
  return {
    sourceX: from.x + NODE_WIDTH,
    sourceY: from.y + portTop(edge.sourceRow),
    targetX: to.x,
    targetY: to.y + portTop(edge.targetRow),
  };
}

function freePlace(
  at: (share: number) => [number, number],
  characters: number,
  scale: number,
  taken: readonly Area[],
): [number, number] | null {
  for (const shift of SHIFTS) {
    for (const share of SHARES) {
      const [x, y] = at(share);
      const place: [number, number] = [x, y + shift];
      const area = labelArea(place, characters, scale);
      if (!taken.some((other) => overlap(area, other, APART))) return place;
    }
  }
  return null;
}

export function overlap(a: Area, b: Area, apart = 0): boolean {
  return (
    a.left < b.right + apart &&
    b.left < a.right + apart &&
    a.top < b.bottom + apart &&
    b.top < a.bottom + apart
  );
}

/** All that is to be seen: boxes, lanes and labels, these as large as they get. */
export function extent(boxes: readonly RouteBox[], routes: ReadonlyMap<string, Route>): Area {
  const area: Area = {
    left: Math.min(...boxes.map((box) => box.x)) - PORT_REACH,
    top: Math.min(...boxes.map((box) => box.y)),
    right: Math.max(...boxes.map((box) => box.x + NODE_WIDTH)) + PORT_REACH,
    bottom: Math.max(...boxes.map((box) => box.y + box.height)),
  };
  for (const { lane } of routes.values()) {
    if (!lane) continue;
    area.bottom = Math.max(area.bottom, lane.y + (LABEL.height * textScale(0)) / 2);
  }
  return area;
}
