import type { EdgeKind } from "./edgeKinds";
import { textWidth } from "./geometry";
import { type Area, overlap, type Point } from "./shapes";

/** A rate stands on every line of a run. */
export const RATE = "44.4k/s";
const AROUND = 18;
const SIGN = 17;

export const LABEL_HEIGHT = 20;
const APART = 3;
const SHARES = [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.48].flatMap((by) =>
  by === 0 ? [0.5] : [0.5 - by, 0.5 + by],
);
const SHIFTS = [0, -16, 16, -26, 26];
const FAR_SHIFTS = [-44, 44, -64, 64, -88, 88, -112, 112];
const BESIDE = 14;
export const FURTHEST_LABEL = 128;

/** On the longest straight piece if there is one, else along the line; not across another line where that can be. */
export function placeLabel(
  points: readonly Point[],
  [width, height]: readonly [number, number],
  taken: readonly Area[],
  lines: readonly Area[],
): Point | null {
  const near = [...straightPlaces(points, width), ...alongPlaces(points, SHIFTS)];
  const isFree = (place: Point, areas: readonly Area[], apart: number) => {
    const area = labelArea(place, width, height);
    return !areas.some((other) => overlap(area, other, apart));
  };
  let spare: Point | null = null;
  for (const place of near) {
    if (!isFree(place, taken, APART)) continue;
    if (isFree(place, lines, 1)) return place;
    spare ??= place;
  }
  if (spare) return spare;
  // Further away it is still said, and pointing at it shows whose it is.
  const far = alongPlaces(points, FAR_SHIFTS);
  return (
    far.find((place) => isFree(place, taken, APART) && isFree(place, lines, 1)) ??
    [...near, ...far].find((place) => isFree(place, taken, 0)) ??
    null
  );
}

export function labelArea([x, y]: Point, width: number, height = LABEL_HEIGHT): Area {
  return {
    left: x - width / 2,
    top: y - height / 2,
    right: x + width / 2,
    bottom: y + height / 2,
  };
}

function alongPlaces(points: readonly Point[], shifts: readonly number[]): Point[] {
  const total = lengthOf(points);
  const line = SHARES.map((share) => pointAt(points, share * total));
  return shifts.flatMap((shift) => line.map(([x, y]): Point => [x, y + shift]));
}

function straightPlaces(points: readonly Point[], width: number): Point[] {
  const places: { room: number; list: Point[] }[] = [];
  for (let index = 1; index < points.length; index += 1) {
    const [[ax, ay], [bx, by]] = [points[index - 1] as Point, points[index] as Point];
    if (ay !== by) continue;
    const room = Math.abs(bx - ax) - width - 2 * BESIDE;
    if (room < 0) continue;
    const middle = (ax + bx) / 2;
    const list: Point[] = [[middle, ay]];
    for (let by2 = 10; by2 <= room / 2; by2 += 10)
      list.push([middle - by2, ay], [middle + by2, ay]);
    places.push({ room, list });
  }
  return places.toSorted((a, b) => b.room - a.room).flatMap(({ list }) => list);
}

function lengthOf(points: readonly Point[]): number {
  let length = 0;
  for (let index = 1; index < points.length; index += 1) {
    length += distance(points[index - 1] as Point, points[index] as Point);
  }
  return length;
}

function pointAt(points: readonly Point[], at: number): Point {
  let left = at;
  for (let index = 1; index < points.length; index += 1) {
    const [from, to] = [points[index - 1] as Point, points[index] as Point];
    const length = distance(from, to);
    if (left <= length && length > 0) {
      const share = left / length;
      return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
    }
    left -= length;
  }
  return points.at(-1) as Point;
}

function distance([ax, ay]: Point, [bx, by]: Point): number {
  return Math.hypot(bx - ax, by - ay);
}

/** Room is kept for a rate before there is one, so that nothing moves when it comes. */
export function labelWidth(text: string, kind: EdgeKind, isLive: boolean): number {
  const words = [text, ...(isLive && kind !== "tie" ? [RATE] : [])].filter(Boolean).join(" · ");
  if (words === "") return 0;
  return textWidth(words, 12) + AROUND + (kind === "learning" ? SIGN : 0);
}
