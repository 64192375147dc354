/**
 * How the graph is fitted into the window. It is never drawn smaller than it is written, so that its text can be read:
 * a graph that is too large for that is shown from its beginning, with an overview beside it. Pure.
 */
import { type FitViewOptions, getViewportForBounds, type Viewport } from "@xyflow/react";
import type { Area } from "./shapes";

/** Text of the canvas has 12 px at this zoom. */
export const LEAST_FIT = 1;

const AROUND = 28;
/** So much of the canvas' lower edge lies under its tools: what is brought into sight stays above. */
export const UNDER_TOOLS = 60;
/** Kept around a box that is brought into sight. */
const MARGIN = 16;
export const FIT: FitViewOptions = { padding: `${AROUND}px`, minZoom: LEAST_FIT, maxZoom: 1 };
export const FIT_MILLISECONDS = 200;

/**
 * @param start the box that a graph begins with: it is in sight where not everything can be
 */
export function fitted(area: Area, start: Area, width: number, whole: number): Viewport {
  const height = whole - UNDER_TOOLS;
  const bounds = {
    x: area.left,
    y: area.top,
    width: area.right - area.left,
    height: area.bottom - area.top,
  };
  const view = getViewportForBounds(bounds, width, height, LEAST_FIT, 1, `${AROUND}px`);
  const { zoom } = view;
  const [spareX, spareY] = [width - bounds.width * zoom, height - bounds.height * zoom];
  if (spareX < 2 * AROUND) view.x = Math.max(spareX / 2, AROUND / 4) - area.left * zoom;
  if (spareY < 0) {
    const wish = height / 2 - ((start.top + start.bottom) / 2) * zoom;
    const [most, least] = [AROUND / 2 - area.top * zoom, height - AROUND / 2 - area.bottom * zoom];
    view.y = Math.max(least, Math.min(most, wish));
  } else if (spareY < 2 * AROUND) {
    view.y = spareY / 2 - area.top * zoom;
  }
  return view;
}

/** Whether a graph is larger than the window even where it is drawn smallest. */
export function isTooLarge(area: Area, width: number, height: number): boolean {
  return (
    (area.right - area.left) * LEAST_FIT > width ||
    (area.bottom - area.top) * LEAST_FIT > height - UNDER_TOOLS
  );
}

/** Whether all of an area is seen, above the tools. */
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
