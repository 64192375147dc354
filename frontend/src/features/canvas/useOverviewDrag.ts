import { useReactFlow } from "@xyflow/react";
import { type RefObject, useEffect, useRef } from "react";
import { useMoving } from "./useMoves";

/** By how much a turn of the wheel zooms, by what the browser counts in: pixels, lines or pages. */
const ZOOM_BY = [0.002, 0.05, 1];

/** Dragged, the overview moves the window over the graph; the wheel zooms it. */
export function useOverviewDrag(): RefObject<SVGSVGElement | null> {
  const svg = useRef<SVGSVGElement>(null);
  const { getViewport, setViewport, getZoom, zoomTo } = useReactFlow();
  useEffect(() => {
    const element = svg.current;
    if (!element) return;
    const take = (event: PointerEvent) =>
      event.button === 0 && element.setPointerCapture(event.pointerId);
    const move = (event: PointerEvent) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      const { x, y, zoom } = getViewport();
      const by = (element.viewBox.baseVal.width / element.clientWidth) * zoom;
      useMoving.setState({ isMoving: true });
      void setViewport({ x: x - event.movementX * by, y: y - event.movementY * by, zoom });
    };
    const rest = () => useMoving.setState({ isMoving: false });
    const turn = (event: WheelEvent) => {
      event.preventDefault();
      void zoomTo(getZoom() * 2 ** (-event.deltaY * (ZOOM_BY[event.deltaMode] ?? 0)));
    };
    element.addEventListener("pointerdown", take);
    element.addEventListener("pointermove", move);
    element.addEventListener("lostpointercapture", rest);
    element.addEventListener("wheel", turn, { passive: false });
    return () => {
      element.removeEventListener("pointerdown", take);
      element.removeEventListener("pointermove", move);
      element.removeEventListener("lostpointercapture", rest);
      element.removeEventListener("wheel", turn);
    };
  }, [getViewport, setViewport, getZoom, zoomTo]);
  return svg;
}
