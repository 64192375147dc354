/**
 * How the graph is fitted into the window. It is never drawn so small that its text cannot be read: a graph
 * that is too large for that is shown from its beginning, with an overview beside it. Pure.
 */
import { type FitViewOptions, getViewportForBounds, type Viewport } from "@xyflow/react";
import type { Area } from "./routes";

/** Text of the canvas at full size, and the least that can be read. */
const TEXT = 12;
const LEAST_TEXT = 10.1;
export const LEAST_FIT = 0.6;
const STEP = 0.05;

/** Left stand the controls; in a small canvas they lie at its bottom (`.canvas-tools` in canvas.css). */
const LEFT = 64;
const FLAT = { width: 720, height: 340 } as const;
const BOTTOM = 56;
const TOP = 24;
/** The least space beside the graph. */
const EDGE = 12;

const PADDING = {
  left: `${LEFT}px`,
  right: "24px",
  top: `${TOP}px`,
  bottom: "24px",
} as const;

export const FIT: FitViewOptions = {
  padding: PADDING,
  minZoom: LEAST_FIT,
  maxZoom: 1,
};
export const FIT_MILLISECONDS = 200;

/** How much larger text is drawn than its place was planned for, so that it stays readable down to the fit. */
export function textScale(zoom: number): number {
  const wish = LEAST_TEXT / (TEXT * Math.max(zoom, LEAST_FIT));
  return Math.max(1, Math.ceil(wish / STEP) * STEP);
}

export function fitted(area: Area, width: number, height: number): Viewport {
  const bounds = {
    x: area.left,
    y: area.top,
    width: area.right - area.left,
    height: area.bottom - area.top,
  };
  const isFlat = width <= FLAT.width || height <= FLAT.height;
  const left = isFlat ? EDGE : LEFT;
  const padding = isFlat
    ? ({ ...PADDING, left: `${EDGE}px`, bottom: `${BOTTOM}px` } as const)
    : PADDING;
  const view = getViewportForBounds(bounds, width, height, LEAST_FIT, 1, padding);
  const wide = bounds.width * view.zoom;
  // A graph that fits only beside and under the controls is shown whole.
  if (wide > width - left - EDGE)
    view.x = Math.max(EDGE, Math.min(left, width - EDGE - wide)) - area.left * view.zoom;
  const high = bounds.height * view.zoom;
  if (high > height - TOP) {
    const free = height - high;
    view.y = (free < 0 ? TOP : Math.min(TOP, free)) - area.top * view.zoom;
  }
  return view;
}

/** Whether a graph is larger than the window even where it is drawn smallest. */
export function isTooLarge(area: Area, width: number, height: number): boolean {
  const view = fitted(area, width, height);
  return (
    (area.right - area.left) * view.zoom > width || (area.bottom - area.top) * view.zoom > height
  );
}
