/**
 * How the graph is fitted into the window: always the whole of it. Where whole cards could not be read any more, it is
 * drawn with compact ones. Pure.
 */
import type { FitViewOptions, Viewport } from "@xyflow/react";
import { growth, type Squeeze, squeezeBoxes, trackIn } from "@/graph/compact";
import type { Drawing } from "@/graph/routes";
import type { Area, Box } from "@/graph/shapes";

/** Below this zoom nobody reads the text of whole cards, which has 12 px. */
export const READABLE = 0.7;
/** From a graph of compact cards, so much closer than where all of it is seen, cards are drawn whole. */
const CLOSER = 1.08;
const MIN_WHOLE = 0.75;

const AROUND = 28;
const COMPACT_AROUND = 14;
/** A window with more room than this for a graph shows it larger, up to so much. */
const PLENTY = { width: 1400, height: 860 };
const LARGEST = 1.3;
/** So much of the canvas' lower edge lies under its tools: what is brought into sight stays above. */
export const UNDER_TOOLS = 60;
const MARGIN = 16;
export const FIRST_FIT: FitViewOptions = { padding: `${AROUND}px`, minZoom: 0.02, maxZoom: 1 };
export const FIT_MILLISECONDS = 200;

export interface Room {
  width: number;
  height: number;
  corner?: { width: number; height: number };
  isFramed?: boolean;
}

export type Draw = (squeeze: Squeeze | null) => Drawing;

export function planFit(boxes: readonly Box[], draw: Draw, room: Room) {
  const { area } = draw(null);
  if (area === null) return null;
  const view = fittedBeside(area, boxes, room, AROUND, largest(room));
  if (view.zoom >= READABLE) return { squeeze: null, view };
  const squeeze = squeezeInto(boxes, draw, room);
  const compact = draw(squeeze).area ?? area;
  const cards = squeezeBoxes(boxes, squeeze);
  return { squeeze, view: fittedBeside(compact, cards, room, COMPACT_AROUND, squeeze.zoom) };
}

function fittedBeside(
  area: Area,
  boxes: readonly Box[],
  room: Room,
  around: number,
  most: number,
): Viewport {
  const { corner } = room;
  const view = fitted(area, room, around, most);
  if (!corner) return view;
  const left = room.width - corner.width;
  const isUnder = (box: Box) =>
    (box.x + box.width) * view.zoom + view.x > left && box.y * view.zoom + view.y < corner.height;
  if (!boxes.some(isUnder)) return view;
  const beside = fitted(area, { ...room, width: left }, around, most);
  const below = fitted(area, { ...room, height: room.height - corner.height }, around, most);
  return below.zoom > beside.zoom ? { ...below, y: below.y + corner.height } : beside;
}

function largest({ width, height }: Room): number {
  const spare = Math.min(width / PLENTY.width, height / PLENTY.height);
  return Math.max(1, Math.min(LARGEST, spare));
}

const ROUNDS = 6;
const NEAR = 0.02;
const MAX_STRETCH = 5;
const LARGEST_CARD = 1;
/** Lines of learning take at most so much of the window's height, however many they are. */
const MAX_LANE = 0.5;

/** The stretch with which a graph of compact cards fills the window in both directions. */
export function squeezeInto(boxes: readonly Box[], draw: Draw, room: Room): Squeeze {
  const { isFramed = false } = room;
  let track = trackIn(room.height);
  const [wide, high] = roomFor(room, COMPACT_AROUND);
  let [x, y] = [1, 1];
  let zoom = 0.5;
  let squeeze: Squeeze = { x, y, ...growth(boxes, { x, y, zoom }, isFramed), zoom, track };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { area, laneTop } = draw(squeeze);
    if (area === null) break;
    const lane = (area.bottom - (laneTop ?? area.bottom)) * squeeze.zoom;
    if (lane > MAX_LANE * high) {
      track *= (MAX_LANE * high) / lane;
      squeeze = { ...squeeze, track };
      continue;
    }
    const across = wide / (area.right - area.left);
    const down = high / (area.bottom - area.top);
    const most = LARGEST_CARD / Math.max(x, y);
    zoom = Math.min(across, down, most);
    const isNear = Math.abs(zoom / squeeze.zoom - 1) < NEAR;
    const spare = Math.min(Math.max(across, down), most) / zoom;
    if (isNear && spare < 1 + NEAR) break;
    if (across > down) x *= spare;
    else y *= spare;
    const least = Math.min(x, y);
    [x, y] = [Math.min(x / least, MAX_STRETCH), Math.min(y / least, MAX_STRETCH)];
    zoom = Math.min(zoom * least, LARGEST_CARD / Math.max(x, y));
    squeeze = { x, y, ...growth(boxes, { x, y, zoom }, isFramed), zoom, track };
  }
  return squeeze;
}

function roomFor({ width, height }: Room, around: number): [number, number] {
  return [Math.max(1, width - 2 * around), Math.max(1, height - UNDER_TOOLS - 2 * around)];
}

/** All of an area, in the middle of what lies above the tools. */
export function fitted(area: Area, room: Room, around: number, most: number): Viewport {
  const [wide, high] = roomFor(room, around);
  const [across, down] = [area.right - area.left, area.bottom - area.top];
  const zoom = Math.min(most, wide / across, high / down);
  return {
    x: (room.width - across * zoom) / 2 - area.left * zoom,
    y: (room.height - UNDER_TOOLS - down * zoom) / 2 - area.top * zoom,
    zoom,
  };
}

/** Whether a graph of compact cards that was zoomed to this is to be drawn with whole ones. */
export function opensAt(squeeze: Squeeze, zoom: number): boolean {
  const stretch = Math.max(squeeze.x, squeeze.y);
  return zoom * stretch > Math.max(MIN_WHOLE, CLOSER * squeeze.zoom * stretch);
}

/** The same place of the loop at the same place of the window, with the other kind of cards. */
export function turned(
  view: Viewport,
  anchor: { x: number; y: number },
  before: Squeeze | null,
  after: Squeeze | null,
): Viewport {
  const from = before ?? { x: 1, y: 1 };
  const to = after ?? { x: 1, y: 1 };
  const zoom = (view.zoom * Math.max(from.x, from.y)) / Math.max(to.x, to.y);
  return {
    x: anchor.x - ((anchor.x - view.x) / view.zoom / from.x) * to.x * zoom,
    y: anchor.y - ((anchor.y - view.y) / view.zoom / from.y) * to.y * zoom,
    zoom,
  };
}

export function isInSight(view: Viewport, area: Area, width: number, height: number): boolean {
  const { left, top, right, bottom } = onScreen(view, area);
  return left >= 0 && top >= 0 && right <= width && bottom <= height - UNDER_TOOLS;
}

/** The view moved as far as is needed to see all of an area, and no further; its beginning, where it is larger. */
export function broughtIntoSight(
  view: Viewport,
  area: Area,
  width: number,
  height: number,
): Viewport {
  if (isInSight(view, area, width, height)) return view;
  const { left, top, right, bottom } = onScreen(view, area);
  const shift = (start: number, end: number, most: number) => {
    const back = Math.min(0, most - MARGIN - end);
    return start + back < MARGIN ? MARGIN - start : back;
  };
  return {
    x: view.x + shift(left, right, width),
    y: view.y + shift(top, bottom, height - UNDER_TOOLS),
    zoom: view.zoom,
  };
}

function onScreen({ x, y, zoom }: Viewport, { left, top, right, bottom }: Area): Area {
  return {
    left: left * zoom + x,
    top: top * zoom + y,
    right: right * zoom + x,
    bottom: bottom * zoom + y,
  };
}
