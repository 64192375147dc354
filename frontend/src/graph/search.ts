/**
 * A way around boxes in straight pieces: out of one port, along a free vertical, a free horizontal and another free
 * vertical, into the other port. Lines of different ports do not lie on each other. Pure.
 */
import { type Area, overlap, type Point } from "./shapes";

/** A straight piece that is drawn: at this x or y, between two others, by whom. */
export interface Track {
  at: number;
  from: number;
  to: number;
  by: string;
}

export interface Taken {
  boxes: readonly Area[];
  sides: Sides;
  across: Track[];
  down: Track[];
}

const CLEAR = 10;
const APART = 10;
const BESIDE = [18, 28, 38, 48, 58];
const BELOW = [18, 28, 38, 12];
/** As far as a line goes aside to come down. */
const ASIDE = 700;
const MAX_SIDES = 48;

export class Sides {
  private readonly all: readonly number[];

  constructor(boxes: readonly Area[]) {
    const found = boxes.flatMap(({ left, right }) =>
      BESIDE.flatMap((off) => [left - off, right + off]),
    );
    this.all = [...new Set(found)].toSorted((a, b) => a - b);
  }

  near(x: number): number[] {
    return this.all
      .filter((side) => Math.abs(side - x) < ASIDE)
      .toSorted((a, b) => Math.abs(a - x) - Math.abs(b - x))
      .slice(0, MAX_SIDES);
  }
}

/** What a turn costs, in lengths of line. */
const LANE = 34;

/**
 * From a right side to a left side.
 *
 * @param isAbove whether it is to run above all boxes
 * @param by lines of the same source may share a piece
 */
export function routeAround(
  ends: [Point, Point],
  taken: Taken,
  isAbove: boolean,
  by: string,
): Point[] {
  const points =
    findAround(ends, taken, isAbove, by) ??
    findAround(ends, { ...taken, across: [], down: [] }, false, by) ??
    straightOut(ends);
  noteLine(points, taken, by);
  return points;
}

function straightOut([[sx, sy], [tx, ty]]: [Point, Point]): Point[] {
  const middle = (sx + tx) / 2;
  return [
    [sx, sy],
    [middle, sy],
    [middle, ty],
    [tx, ty],
  ];
}

function findAround(
  [[sx, sy], [tx, ty]]: [Point, Point],
  taken: Taken,
  isAbove: boolean,
  by: string,
): Point[] | null {
  const levels = levelsOf(taken, (sy + ty) / 2, isAbove);
  const outs = sidesOf(taken, sx, 1).filter((x) => isFreeAcross(taken, sy, sx, x, by));
  const intos = sidesOf(taken, tx, -1).filter((x) => isFreeAcross(taken, ty, x, tx, by));
  let best: Point[] | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const y of levels) {
    const up = Math.abs(y - sy) + Math.abs(y - ty);
    if (!isAbove && up >= least) continue;
    for (const out of outs) {
      if (!isFreeDown(taken, out, sy, y, by)) continue;
      for (const into of intos) {
        const cost = up + Math.abs(out - sx) + Math.abs(into - out) + Math.abs(tx - into);
        if (cost >= least) continue;
        if (!isFreeDown(taken, into, ty, y, by) || !isFreeAcross(taken, y, out, into, by)) continue;
        least = cost;
        best = [
          [sx, sy],
          [out, sy],
          [out, y],
          [into, y],
          [into, ty],
          [tx, ty],
        ];
      }
    }
    if (best && isAbove) break;
  }
  return best;
}

/** Heights at which a line might run: above and below every box, nearest to the wish first. */
function levelsOf({ boxes }: Taken, wish: number, isAbove: boolean): number[] {
  const top = Math.min(...boxes.map((box) => box.top));
  const bottom = Math.max(...boxes.map((box) => box.bottom));
  const above = [0, 1, 2, 3, 4, 5].map((track) => top - LANE - 14 * track);
  if (isAbove) return above;
  const beside = boxes.flatMap((box) => BELOW.flatMap((by) => [box.top - by, box.bottom + by]));
  const below = [0, 1, 2].map((track) => bottom + 22 + 12 * track);
  const all = [...new Set([...beside, ...above, ...below])];
  return all.toSorted((a, b) => Math.abs(a - wish) - Math.abs(b - wish));
}

function sidesOf({ boxes }: Taken, x: number, way: 1 | -1): number[] {
  const near = BESIDE.map((by) => x + way * by);
  const others = boxes.flatMap((box) =>
    BESIDE.slice(0, 3).map((by) => (way > 0 ? box.right + by : box.left - by)),
  );
  const ahead = others.filter((one) => (one - x) * way > 12 && Math.abs(one - x) < 420);
  return [...new Set([...near, ...ahead])].toSorted((a, b) => Math.abs(a - x) - Math.abs(b - x));
}

/**
 * From the bottom of a box to the bottom of another through a lane; straight down where nothing stands below.
 *
 * @param lane its height; null: from the bottom of one to the top of the other
 */
export function routeInLane(from: Point, to: Point, lane: number | null, taken: Taken): Point[] {
  const key = `${from} ${to}`;
  const ends: [Point, 1 | -1][] = [
    [from, 1],
    [to, lane === null ? -1 : 1],
  ];
  const middle = lane ?? from[1] + 20;
  const [first, second] = ends.map(([[x, y], way]) =>
    downFrom(x, y, way, lane === null && way < 0 ? middle : (lane ?? middle), taken, key),
  ) as [Point[], Point[]];
  const points = [...first, ...second.toReversed()];
  const line = points.filter(
    ([x, y], index) => index === 0 || x !== points[index - 1]?.[0] || y !== points[index - 1]?.[1],
  );
  noteLine(lane === null ? line : line.filter(([, y]) => y !== lane), taken, key);
  for (const end of [first, second]) {
    const [x] = end.at(-1) as Point;
    const start = (end.at(-2) as Point)[1];
    taken.down.push({ at: x, from: Math.min(start, middle), to: Math.max(start, middle), by: key });
  }
  return line;
}

function downFrom(
  x: number,
  y: number,
  way: 1 | -1,
  goal: number,
  taken: Taken,
  by: string,
): Point[] {
  return (
    findDown(x, y, way, goal, taken, by) ??
    findDown(x, y, way, goal, { ...taken, across: [], down: [] }, by) ?? [
      [x, y],
      [x, goal],
    ]
  );
}

const TURNS = [14, 22, 30, 38];

function between({ sides, boxes, across, down }: Taken, top: number, bottom: number): Taken {
  return {
    sides,
    boxes: boxes.filter((box) => box.top < bottom && top < box.bottom),
    across: across.filter(({ at }) => at > top && at < bottom),
    down: down.filter(({ from, to }) => from < bottom && top < to),
  };
}

function findDown(
  x: number,
  y: number,
  way: 1 | -1,
  goal: number,
  all: Taken,
  by: string,
): Point[] | null {
  const taken = between(all, Math.min(y, goal) - 50, Math.max(y, goal) + 50);
  if (isFreeDown(taken, x, y + way * CLEAR, goal, by)) {
    return [
      [x, y],
      [x, goal],
    ];
  }
  for (const side of all.sides.near(x)) {
    if (!isFreeDown(taken, side, y + way * (TURNS[0] ?? 0), goal, by)) continue;
    const turn = TURNS.map((step) => y + way * step).find((at) =>
      isFreeAcross(taken, at, x, side, by),
    );
    if (turn === undefined) continue;
    return [
      [x, y],
      [x, turn],
      [side, turn],
      [side, goal],
    ];
  }
  return null;
}

function isFreeDown(taken: Taken, x: number, y1: number, y2: number, by: string): boolean {
  const [top, bottom] = [Math.min(y1, y2), Math.max(y1, y2)];
  const line: Area = { left: x - CLEAR, right: x + CLEAR, top, bottom };
  return (
    !taken.boxes.some((box) => overlap(line, box)) &&
    !taken.down.some(
      (one) => one.by !== by && Math.abs(one.at - x) < APART && one.from < bottom && top < one.to,
    )
  );
}

function isFreeAcross(taken: Taken, y: number, x1: number, x2: number, by: string): boolean {
  const [left, right] = [Math.min(x1, x2), Math.max(x1, x2)];
  const line: Area = { left: left + 1, right: right - 1, top: y - 5, bottom: y + 5 };
  return (
    !taken.boxes.some((box) => overlap(line, box)) &&
    !taken.across.some(
      (one) => one.by !== by && Math.abs(one.at - y) < APART && one.from < right && left < one.to,
    )
  );
}

/** The pieces of a line are taken for lines of others. */
export function noteLine(points: readonly Point[], taken: Taken, by: string): void {
  for (let index = 1; index < points.length; index += 1) {
    const [[ax, ay], [bx, by2]] = [points[index - 1] as Point, points[index] as Point];
    if (ax === bx) taken.down.push({ at: ax, from: Math.min(ay, by2), to: Math.max(ay, by2), by });
    else if (ay === by2)
      taken.across.push({ at: ay, from: Math.min(ax, bx), to: Math.max(ax, bx), by });
  }
}
