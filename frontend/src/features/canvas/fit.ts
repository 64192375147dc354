/**
 * How the graph is fitted into the window. It is never drawn smaller than it is written, so that its text can be read:
 * a graph that is too large for that is shown from its beginning, with an overview beside it. Pure.
 */
import { type FitViewOptions, getViewportForBounds, type Viewport } from "@xyflow/react";
import type { Area } from "./shapes";

/** Text of the canvas has 12 px at this zoom. */
export const LEAST_FIT = 1;

const AROUND = 28;
export const FIT: FitViewOptions = { padding: `${AROUND}px`, minZoom: LEAST_FIT, maxZoom: 1 };
export const FIT_MILLISECONDS = 200;

/**
 * @param start the box that a graph begins with: it is in sight where not everything can be
 */
export function fitted(area: Area, start: Area, width: number, height: number): Viewport {
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
    (area.right - area.left) * LEAST_FIT > width || (area.bottom - area.top) * LEAST_FIT > height
  );
}
