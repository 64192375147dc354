import { useReactFlow } from "@xyflow/react";
import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { GRID } from "@/document/geometry";
import type { Point } from "@/document/types";
import { toLoop } from "@/session/detail";
import { usePreferences } from "@/session/preferences";

const STEPS: Record<string, Point> = {
  ArrowLeft: [-GRID, 0],
  ArrowRight: [GRID, 0],
  ArrowUp: [0, -GRID],
  ArrowDown: [0, GRID],
};

interface NoteDrag {
  /** As it is now, under the pointer too. */
  value: Point;
  handle: {
    onPointerDown: (event: PointerEvent) => void;
    onKeyDown: (event: KeyboardEvent) => void;
  };
}

/** A point of the canvas that is dragged by a handle; told of once it is let go. Arrow keys move it by a step. */
export function useNoteDrag(point: Point, onDone: (point: Point) => void): NoteDrag {
  const { getZoom } = useReactFlow();
  const [dragged, setDragged] = useState<Point | null>(null);

  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    event.stopPropagation();
    const handle = event.currentTarget;
    const [startX, startY] = [event.clientX, event.clientY];
    const zoom = getZoom();
    const grid = usePreferences.getState().snapsToGrid ? GRID : 1;
    const at = (now: globalThis.PointerEvent): Point => {
      const by = toLoop({ x: (now.clientX - startX) / zoom, y: (now.clientY - startY) / zoom });
      return [
        Math.round((point[0] + by.x) / grid) * grid,
        Math.round((point[1] + by.y) / grid) * grid,
      ];
    };
    const listening = new AbortController();
    const options = { signal: listening.signal };
    window.addEventListener("pointermove", (now) => setDragged(at(now)), options);
    const end = (now: globalThis.PointerEvent | null) => {
      listening.abort();
      setDragged(null);
      if (now && (now.clientX !== startX || now.clientY !== startY)) onDone(at(now));
    };
    window.addEventListener("pointerup", end, options);
    window.addEventListener("pointercancel", () => end(null), options);
    if (handle instanceof HTMLElement) handle.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    onDone([point[0] + step[0], point[1] + step[1]]);
  };
  return { value: dragged ?? point, handle: { onPointerDown, onKeyDown } };
}
