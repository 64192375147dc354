/**
 * The ways of all edges of a graph together. Data runs from left to right, around boxes that it has nothing to do
 * with; what is learned in a lane below all boxes, what is measured in one above them, each on a track of its own.
 * Labels stand on free ground, never on a box, a bend or another label. Pure.
 */
import type { Way } from "./edgeKinds";
import { curvePath, curvePoints, roundedPath } from "./edgePath";
import { FURTHEST_LABEL, LABEL_HEIGHT, labelArea, placeLabel } from "./labels";
import { routeAround, routeInLane, Sides, type Taken } from "./search";
import {
  type Area,
  areaOf,
  crosses,
  lineArea,
  overlap,
  type Point,
  type RouteBox,
  union,
} from "./shapes";
import { planSockets, type Socket } from "./sockets";

export interface RouteEdge {
  key: string;
  source: string;
  target: string;
  sourcePort: string;
  targetPort: string;
  way: Way;
  /** Of a tie, the node that serves. */
  follower: string | null;
  /** Middles of the two ports, from the top of their boxes. */
  sourceTop: number;
  targetTop: number;
  /** How wide its label is at most; 0 for none. */
  label: number;
}

export interface Route {
  way: Way;
  path: string;
  /** The same in straight pieces, near enough. */
  points: readonly Point[];
  /** Middle of the label, or null where it has no free place. */
  label: Point | null;
}

export interface Drawing {
  routes: ReadonlyMap<string, Route>;
  sockets: ReadonlyMap<string, readonly Socket[]>;
  /** Where the lane of learning begins; null where nothing is learned. */
  laneTop: number | null;
  /** All that is to be seen; null without boxes. */
  area: Area | null;
}

const NOTHING: Drawing = {
  routes: new Map(),
  sockets: new Map(),
  laneTop: null,
  area: null,
};

/** What is as large on the canvas as words and signs make it. */
export interface Measures {
  /** From the lowest box to the lane of learning, in it to the first track, and from one track to the next. */
  laneGap: number;
  laneHead: number;
  track: number;
  labelHeight: number;
  /** How far apart ends of lines stand at a bottom or a top, against those of whole cards. */
  sockets: number;
}

const MEASURES: Measures = {
  laneGap: 32,
  laneHead: 28,
  track: 28,
  labelHeight: LABEL_HEIGHT,
  sockets: 1,
};
/** Ports stick out of their box. */
const PORT_REACH = 8;
/** The signs of ports stick out less than what takes the pointer. */
const SIGN_REACH = 6;
/** How far lines stay away from boxes. */
const CLEAR = 6;
const PIECES = 14;
const BEND = 26;
/** Data that goes further back than this turns around. */
const MIN_AHEAD = 36;

type Ends = [Point, Point];

export function routeEdges(
  boxes: readonly RouteBox[],
  edges: readonly RouteEdge[],
  measures: Measures = MEASURES,
): Drawing {
  if (boxes.length === 0) return NOTHING;
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const known = edges.filter(({ source, target }) => byId.has(source) && byId.has(target));
  const sockets = planSockets(byId, known, measures.sockets);
  const areas = boxes.map(areaOf);
  const taken: Taken = { boxes: areas, sides: new Sides(areas), across: [], down: [] };
  const lines = new Map<string, { path: string; points: Point[] }>();

  const sided = known.filter(({ way }) => way === "data" || way === "measure");
  routeSided(sided, byId, taken, lines);
  routeTies(known, byId, sockets, taken, lines);
  const bottom = union([
    ...taken.boxes,
    ...[...lines.values()].flatMap(({ points }) => piecesOf(points)),
  ]).bottom;
  const learned = known.filter(({ way }) => way === "learning");
  const laneTop = learned.length > 0 ? bottom + measures.laneGap : null;
  if (laneTop !== null) {
    routeLearning(learned, byId, sockets, taken, { ...measures, laneTop }, lines);
  }

  const routes = withLabels(known, taken.boxes, lines, measures.labelHeight);
  return { routes, sockets, laneTop, area: extent(taken.boxes, routes, measures.labelHeight) };
}

/** Straight curves first, so that those that go around see them. */
function routeSided(
  edges: readonly RouteEdge[],
  boxes: ReadonlyMap<string, RouteBox>,
  taken: Taken,
  lines: Map<string, { path: string; points: Point[] }>,
): void {
  const twins = new Map<string, number>();
  const around: { edge: RouteEdge; ends: Ends }[] = [];
  for (const edge of edges) {
    const ends = endsOf(edge, boxes);
    const ports = `${edge.source} ${edge.sourcePort} ${edge.target} ${edge.targetPort}`;
    const twin = twins.get(ports) ?? 0;
    twins.set(ports, twin + 1);
    const points = curvePoints(...ends, BEND * twin, PIECES);
    const isAhead = ends[1][0] - ends[0][0] >= MIN_AHEAD;
    // Both ends lie at the side of their box, where the line does touch it.
    const inner = points.slice(1, -1);
    if (isAhead && !crosses(inner, taken.boxes, CLEAR)) {
      lines.set(edge.key, { path: curvePath(...ends, BEND * twin), points });
    } else {
      around.push({ edge, ends });
    }
  }
  const reach = ({ ends: [[sx], [tx]] }: { ends: Ends }) => Math.abs(tx - sx);
  for (const { edge, ends } of around.toSorted((a, b) => reach(a) - reach(b))) {
    const points = routeAround(ends, taken, edge.way === "measure", edge.source);
    lines.set(edge.key, { path: roundedPath(points), points });
  }
}

function endsOf(edge: RouteEdge, boxes: ReadonlyMap<string, RouteBox>): Ends {
  const from = boxes.get(edge.source) as RouteBox;
  const to = boxes.get(edge.target) as RouteBox;
  return [
    [from.x + from.width, from.y + edge.sourceTop],
    [to.x, to.y + edge.targetTop],
  ];
}

function routeTies(
  edges: readonly RouteEdge[],
  boxes: ReadonlyMap<string, RouteBox>,
  sockets: ReadonlyMap<string, readonly Socket[]>,
  taken: Taken,
  lines: Map<string, { path: string; points: Point[] }>,
): void {
  for (const edge of edges) {
    if (edge.way !== "tie") continue;
    const [from, to] = [
      socketAt(edge.key, edge.source, boxes, sockets, false),
      socketAt(edge.key, edge.target, boxes, sockets, true),
    ];
    if (!from || !to) continue;
    const [upper, lower] = edge.follower === edge.source ? [to, from] : [from, to];
    const isStraight =
      upper[0] === lower[0] &&
      lower[1] > upper[1] &&
      !crosses(
        [
          [upper[0], upper[1] + 1],
          [lower[0], lower[1] - 1],
        ],
        taken.boxes,
      );
    const points = isStraight ? [upper, lower] : routeInLane(upper, lower, null, taken);
    const directed = edge.follower === edge.source ? points.toReversed() : points;
    lines.set(edge.key, { path: roundedPath(directed), points: directed });
    if (isStraight) taken.down.push({ at: upper[0], from: upper[1], to: lower[1], by: edge.key });
  }
}

function socketAt(
  key: string,
  node: string,
  boxes: ReadonlyMap<string, RouteBox>,
  sockets: ReadonlyMap<string, readonly Socket[]>,
  isTarget: boolean,
): Point | null {
  const box = boxes.get(node);
  const socket = sockets.get(node)?.find((one) => one.key === key && one.isTarget === isTarget);
  if (!box || !socket) return null;
  return [box.x + socket.x, socket.side === "top" ? box.y : box.y + box.height];
}

/** Shorter ones run further up; two share a track only where they are apart. */
function routeLearning(
  edges: readonly RouteEdge[],
  boxes: ReadonlyMap<string, RouteBox>,
  sockets: ReadonlyMap<string, readonly Socket[]>,
  taken: Taken,
  { laneTop, laneHead, track: apart }: Measures & { laneTop: number },
  lines: Map<string, { path: string; points: Point[] }>,
): void {
  const planned = edges
    .flatMap((edge) => {
      const from = socketAt(edge.key, edge.source, boxes, sockets, false);
      const to = socketAt(edge.key, edge.target, boxes, sockets, true);
      return from && to ? [{ edge, from, to }] : [];
    })
    .toSorted((a, b) => Math.abs(a.from[0] - a.to[0]) - Math.abs(b.from[0] - b.to[0]))
    .map(({ edge, from, to }) => ({ edge, points: routeInLane(from, to, laneTop, taken) }));
  const tracks: { left: number; right: number }[][] = [];
  const wide = ({ points, edge }: (typeof planned)[number]) => {
    const along = points.filter(([, y]) => y === laneTop).map(([x]) => x);
    const middle = (Math.min(...along) + Math.max(...along)) / 2;
    const half = edge.label / 2 + 8;
    return {
      left: Math.min(...along, middle - half),
      right: Math.max(...along, middle + half),
    };
  };
  const sorted = planned
    .map((plan) => ({ ...plan, own: wide(plan) }))
    .toSorted((a, b) => span(a.own) - span(b.own));
  for (const { own, ...plan } of sorted) {
    const isFree = (track: readonly { left: number; right: number }[]) =>
      track.every(({ left, right }) => right + 16 <= own.left || own.right + 16 <= left);
    let index = tracks.findIndex(isFree);
    if (index < 0) index = tracks.push([]) - 1;
    tracks[index]?.push(own);
    const y = laneTop + laneHead + apart * index;
    const points = plan.points.map(([x, at]): Point => [x, at === laneTop ? y : at]);
    lines.set(plan.edge.key, { path: roundedPath(points), points });
  }
}

function span({ left, right }: { left: number; right: number }): number {
  return right - left;
}

function withLabels(
  edges: readonly RouteEdge[],
  boxes: readonly Area[],
  lines: ReadonlyMap<string, { path: string; points: Point[] }>,
  labelHeight: number,
): Map<string, Route> {
  const taken = boxes.map(
    (box): Area => ({
      left: box.left - SIGN_REACH,
      top: box.top - SIGN_REACH,
      right: box.right + SIGN_REACH,
      bottom: box.bottom + SIGN_REACH,
    }),
  );
  const pieces = [...lines].flatMap(([key, { points }]) =>
    piecesOf(points).map((area) => ({ key, area })),
  );
  const routes = new Map<string, Route>();
  // What is learned has the least choice: it stands on its track.
  const order = edges.toSorted(
    (a, b) => Number(b.way === "learning") - Number(a.way === "learning"),
  );
  for (const { key, way, label: width } of order) {
    const line = lines.get(key);
    if (!line) continue;
    if (width === 0) {
      routes.set(key, { way, ...line, label: null });
      continue;
    }
    const near = grown(union(piecesOf(line.points)), width / 2 + FURTHEST_LABEL);
    const others = pieces
      .filter((piece) => piece.key !== key && overlap(piece.area, near))
      .map(({ area }) => area);
    const free = taken.filter((area) => overlap(area, near));
    const label = placeLabel(line.points, [width, labelHeight], free, others);
    if (label) taken.push(labelArea(label, width, labelHeight));
    routes.set(key, { way, ...line, label });
  }
  return routes;
}

function piecesOf(points: readonly Point[]): Area[] {
  return points.slice(1).map((point, index) => lineArea(points[index] as Point, point));
}

function grown({ left, top, right, bottom }: Area, by: number): Area {
  return { left: left - by, top: top - by, right: right + by, bottom: bottom + by };
}

function extent(
  boxes: readonly Area[],
  routes: ReadonlyMap<string, Route>,
  labelHeight: number,
): Area {
  const all = union([...boxes, ...[...routes.values()].flatMap(({ points }) => piecesOf(points))]);
  return {
    left: all.left - PORT_REACH,
    top: all.top - PORT_REACH,
    right: all.right + PORT_REACH,
    bottom: all.bottom + labelHeight / 2 + 2,
  };
}
