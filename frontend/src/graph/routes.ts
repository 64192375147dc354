/**
 * The ways of all edges of a graph together. Data runs from left to right, around boxes that it has nothing to do
 * with; what is learned in a lane below all boxes, what is measured in one above them, each on a track of its own.
 * Labels stand on free ground, never on a box, a bend or another label. Pure.
 */
import { remember } from "@/lib/remember";
import { type EdgeKind, isSided } from "./edgeKinds";
import { curvePath, curvePoints, roundedPath } from "./edgePath";
import { FURTHEST_LABEL, LABEL_HEIGHT, labelArea, placeLabel } from "./labels";
import { noteLine, routeAround, routeInLane, Sides, type Taken } from "./search";
import {
  type Area,
  areaOf,
  type Box,
  crosses,
  grown,
  lineArea,
  overlap,
  type Point,
  union,
} from "./shapes";
import { planSockets, type Socket } from "./sockets";

export interface RouteEdge {
  key: string;
  source: string;
  target: string;
  sourcePort: string;
  targetPort: string;
  kind: EdgeKind;
  follower: string | null;
  /** Middles of the two ports, from the top of their boxes. */
  sourceTop: number;
  targetTop: number;
  label: number;
}

export interface Route {
  kind: EdgeKind;
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
  sockets: number;
}

const MEASURES: Measures = {
  laneGap: 32,
  laneHead: 28,
  track: 28,
  labelHeight: LABEL_HEIGHT,
  sockets: 1,
};
const PORT_REACH = 8;
const SIGN_ROOM = { side: 6, top: 6, bottom: 6 };
const CLEAR = 6;
const PIECES = 14;
const BEND = 26;
/** Data that goes further back than this turns around. */
const MIN_AHEAD = 36;

type Ends = [Point, Point];

type Line = Pick<Route, "path" | "points">;

/** What lines run between and around; `lines` are those that are found, by their edge. */
interface Ground {
  boxes: ReadonlyMap<string, Box>;
  sockets: ReadonlyMap<string, readonly Socket[]>;
  taken: Taken;
  lines: Map<string, Line>;
}

export interface Drawn {
  boxes: readonly Box[];
  edges: readonly RouteEdge[];
  measures?: Measures | undefined;
  drawing: Drawing;
}

export function routeEdges(
  boxes: readonly Box[],
  edges: readonly RouteEdge[],
  measures: Measures = MEASURES,
): Drawing {
  return boxes.length === 0 ? NOTHING : draw(boxes, edges, measures, NOTHING, null);
}

/**
 * The drawing while boxes are dragged: only lines of boxes that are not where they were are found anew, all others
 * stay. The lane of learning gives way downwards only, and what is to be seen only grows.
 */
export function rerouteEdges(before: Drawn, boxes: readonly Box[]): Drawing {
  const { edges, measures = MEASURES, drawing } = before;
  const old = new Map(before.boxes.map((box) => [box.id, box]));
  const moved = new Set(boxes.filter((box) => !isAt(box, old.get(box.id))).map(({ id }) => id));
  return moved.size === 0 ? drawing : draw(boxes, edges, measures, drawing, moved);
}

/** @param moved boxes that are not where they are in the drawing before; null: all is drawn anew */
function draw(
  boxes: readonly Box[],
  edges: readonly RouteEdge[],
  measures: Measures,
  before: Drawing,
  moved: ReadonlySet<string> | null,
): Drawing {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const known = edges.filter(({ source, target }) => byId.has(source) && byId.has(target));
  const loose = known.filter(
    ({ source, target }) => moved === null || moved.has(source) || moved.has(target),
  );
  const looseKeys = new Set(loose.map(({ key }) => key));
  const sockets = moved ? before.sockets : planSockets(byId, known, measures.sockets);
  const areas = boxes.map(areaOf);
  const taken: Taken = { boxes: areas, sides: new Sides(areas), across: [], down: [] };
  const kept = new Map([...before.routes].filter(([key]) => !looseKeys.has(key)));
  for (const [key, { points }] of kept) {
    if (points.length <= PIECES) noteLine(points, taken, key);
  }
  const lines = new Map<string, Line>(kept);

  const ground: Ground = { boxes: byId, sockets, taken, lines };
  const ofKind = (isMeant: (kind: EdgeKind) => boolean) =>
    loose.filter(({ kind }) => isMeant(kind));
  routeSided(ofKind(isSided), ground);
  routeTies(loose, ground);
  const found = loose.flatMap(({ key }) => lines.get(key) ?? []);
  const { bottom } = union([...areas, ...found.map(({ points }) => outlineOf(points))]);
  const oldTop = before.laneTop ?? Number.NEGATIVE_INFINITY;
  const isTaught = known.some(({ kind }) => kind === "learning");
  const laneTop = isTaught ? Math.max(oldTop, bottom + measures.laneGap) : null;
  if (laneTop !== null) {
    const tracks: Span[][] = [];
    for (const { key, kind, label } of known) {
      const route = kept.get(key);
      if (kind !== "learning" || !route) continue;
      const lower = laneTop > oldTop ? sink(route, oldTop, laneTop - oldTop) : route;
      kept.set(key, lower);
      lines.set(key, lower);
      const height = Math.max(...lower.points.map(([, y]) => y));
      const track = Math.round((height - laneTop - measures.laneHead) / measures.track);
      while (tracks.length <= track) tracks.push([]);
      tracks[track]?.push(spanAt(lower.points, height, label));
    }
    const learned = ofKind((kind) => kind === "learning");
    routeLearning(learned, ground, { ...measures, laneTop }, tracks);
  }

  const widths = new Map(edges.map(({ key, label }) => [key, label]));
  const labelled = [...kept].flatMap(([key, { label }]) =>
    label ? [labelArea(label, widths.get(key) ?? 0, measures.labelHeight)] : [],
  );
  const fresh = withLabels(loose, areas, lines, measures.labelHeight, labelled);
  const routes = new Map([...kept, ...fresh]);
  const changed = new Map([...routes].filter(([key, route]) => route !== before.routes.get(key)));
  const area = extent(areas, changed, measures.labelHeight);
  return { routes, sockets, laneTop, area: union(before.area ? [before.area, area] : [area]) };
}

function isAt(box: Box, old: Box | undefined): boolean {
  return (
    old?.x === box.x && old.y === box.y && old.width === box.width && old.height === box.height
  );
}

/** A line of learning, where the lane is lower by so much. */
function sink(route: Route, laneTop: number, by: number): Route {
  const points = route.points.map(([x, y]): Point => [x, y > laneTop ? y + by : y]);
  const [x, y] = route.label ?? [0, 0];
  return { ...route, points, path: roundedPath(points), label: route.label && [x, y + by] };
}

/** Straight curves first, so that those that go around see them. */
function routeSided(edges: readonly RouteEdge[], { boxes, taken, lines }: Ground): void {
  const twins = new Map<string, number>();
  const around: { edge: RouteEdge; ends: Ends }[] = [];
  for (const edge of edges) {
    const ends = endsOf(edge, boxes);
    const ports = `${edge.source} ${edge.sourcePort} ${edge.target} ${edge.targetPort}`;
    const twin = twins.get(ports) ?? 0;
    twins.set(ports, twin + 1);
    const points = curvePoints(...ends, BEND * twin, PIECES);
    const isAhead = ends[1][0] - ends[0][0] >= MIN_AHEAD;
    const inner = points.slice(1, -1);
    if (isAhead && !crosses(inner, taken.boxes, CLEAR)) {
      lines.set(edge.key, { path: curvePath(...ends, BEND * twin), points });
    } else {
      around.push({ edge, ends });
    }
  }
  const reach = ({ ends: [[sx], [tx]] }: { ends: Ends }) => Math.abs(tx - sx);
  for (const { edge, ends } of around.toSorted((a, b) => reach(a) - reach(b))) {
    const points = routeAround(ends, taken, edge.kind === "measure", edge.source);
    lines.set(edge.key, { path: roundedPath(points), points });
  }
}

function endsOf(edge: RouteEdge, boxes: ReadonlyMap<string, Box>): Ends {
  const from = boxes.get(edge.source) as Box;
  const to = boxes.get(edge.target) as Box;
  return [
    [from.x + from.width, from.y + edge.sourceTop],
    [to.x, to.y + edge.targetTop],
  ];
}

function routeTies(edges: readonly RouteEdge[], ground: Ground): void {
  const { taken, lines } = ground;
  for (const edge of edges) {
    if (edge.kind !== "tie") continue;
    const [from, to] = [socketAt(edge, ground, false), socketAt(edge, ground, true)];
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

function socketAt(edge: RouteEdge, { boxes, sockets }: Ground, isTarget: boolean): Point | null {
  const node = isTarget ? edge.target : edge.source;
  const box = boxes.get(node);
  const socket = sockets
    .get(node)
    ?.find((one) => one.key === edge.key && one.isTarget === isTarget);
  if (!box || !socket) return null;
  return [box.x + socket.x, socket.side === "top" ? box.y : box.y + box.height];
}

/** Shorter ones run further up; two share a track only where they are apart. */
function routeLearning(
  edges: readonly RouteEdge[],
  ground: Ground,
  { laneTop, laneHead, track: apart }: Measures & { laneTop: number },
  tracks: Span[][],
): void {
  const planned = edges
    .flatMap((edge) => {
      const [from, to] = [socketAt(edge, ground, false), socketAt(edge, ground, true)];
      return from && to ? [{ edge, from, to }] : [];
    })
    .toSorted((a, b) => Math.abs(a.from[0] - a.to[0]) - Math.abs(b.from[0] - b.to[0]))
    .map(({ edge, from, to }) => ({ edge, points: routeInLane(from, to, laneTop, ground.taken) }));
  const sorted = planned
    .map((plan) => ({ ...plan, own: spanAt(plan.points, laneTop, plan.edge.label) }))
    .toSorted((a, b) => a.own.right - a.own.left - (b.own.right - b.own.left));
  for (const { own, ...plan } of sorted) {
    const isFree = (track: readonly Span[]) =>
      track.every(({ left, right }) => right + 16 <= own.left || own.right + 16 <= left);
    let index = tracks.findIndex(isFree);
    if (index < 0) index = tracks.push([]) - 1;
    tracks[index]?.push(own);
    const y = laneTop + laneHead + apart * index;
    const points = plan.points.map(([x, at]): Point => [x, at === laneTop ? y : at]);
    ground.lines.set(plan.edge.key, { path: roundedPath(points), points });
  }
}

interface Span {
  left: number;
  right: number;
}

/** What a line and its label take of a track at a height. */
function spanAt(points: readonly Point[], height: number, label: number): Span {
  const along = points.filter(([, y]) => y === height).map(([x]) => x);
  const middle = (Math.min(...along) + Math.max(...along)) / 2;
  const half = label / 2 + 8;
  return { left: Math.min(...along, middle - half), right: Math.max(...along, middle + half) };
}

/** @param labelled areas of labels that stand already */
function withLabels(
  edges: readonly RouteEdge[],
  boxes: readonly Area[],
  lines: ReadonlyMap<string, Line>,
  labelHeight: number,
  labelled: readonly Area[],
): Map<string, Route> {
  const taken = [...boxes.map((box) => grown(box, SIGN_ROOM)), ...labelled];
  const routes = new Map<string, Route>();
  // What is learned has the least choice: it stands on its track.
  const order = edges.toSorted(
    (a, b) => Number(b.kind === "learning") - Number(a.kind === "learning"),
  );
  for (const { key, kind, label: width } of order) {
    const line = lines.get(key);
    if (!line) continue;
    if (width === 0) {
      routes.set(key, { kind, ...line, label: null });
      continue;
    }
    const reach = width / 2 + FURTHEST_LABEL;
    const near = grown(outlineOf(line.points), { side: reach, top: reach, bottom: reach });
    const others = [...lines].flatMap(([other, { points }]) =>
      other !== key && overlap(outlineOf(points), near)
        ? piecesOf(points).filter((area) => overlap(area, near))
        : [],
    );
    const free = taken.filter((area) => overlap(area, near));
    const label = placeLabel(line.points, [width, labelHeight], free, others);
    if (label) taken.push(labelArea(label, width, labelHeight));
    routes.set(key, { kind, ...line, label });
  }
  return routes;
}

const piecesOf = remember((points: readonly Point[]): readonly Area[] =>
  points.slice(1).map((point, index) => lineArea(points[index] as Point, point)),
);

const outlineOf = remember((points: readonly Point[]): Area => union(piecesOf(points)));

function extent(
  boxes: readonly Area[],
  routes: ReadonlyMap<string, Route>,
  labelHeight: number,
): Area {
  const all = union([...boxes, ...[...routes.values()].map(({ points }) => outlineOf(points))]);
  return grown(all, { side: PORT_REACH, top: PORT_REACH, bottom: labelHeight / 2 + 2 });
}
