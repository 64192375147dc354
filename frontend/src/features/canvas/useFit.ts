import { useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useSelection } from "@/session/selection";
import { useViewport } from "@/session/viewport";
import { broughtIntoSight, FIT_MILLISECONDS, fitted, isInSight, isTooLarge } from "./fit";
import type { Drawing } from "./routes";
import { areaOfNode } from "./useReveal";

interface Fit {
  frame: RefObject<HTMLDivElement | null>;
  onTouch: () => void;
  fit: () => void;
  /** The whole graph cannot be shown at once. */
  isTooLarge: boolean;
}

interface Size {
  width: number;
  height: number;
}

/**
 * Brings the whole graph into view: while the panels around it settle, until the user touches it, and
 * whenever a command asks for it.
 *
 * @param drawing all that is to be seen
 */
export function useFit(drawing: Drawing): Fit {
  const frame = useRef<HTMLDivElement>(null);
  const isTouched = useRef(false);
  const now = useRef(drawing);
  now.current = drawing;
  const { setViewport } = useReactFlow();
  const measured = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const [drawn, setDrawn] = useState({ width: 0, height: 0 });

  const show = useCallback(
    (duration: number) => {
      const box = frame.current?.getBoundingClientRect();
      const { area, start } = now.current;
      if (!area || !start || !box || box.width === 0) return;
      void setViewport(fitted(area, start, box.width, box.height), { duration });
    },
    [setViewport],
  );

  // A panel that opens beside a graph that was moved by hand covers nothing that was seen, where all can be seen.
  const flow = useStoreApi();
  const before = useRef<Size | null>(null);
  const keepInSight = useCallback(
    (was: Size | null, { width, height }: Size) => {
      const [x, y, zoom] = flow.getState().transform;
      const view = { x, y, zoom };
      const { area } = now.current;
      if (!was || !area) return;
      const [chosen] = useSelection.getState().nodes;
      const kept = isInSight(view, area, was.width, was.height)
        ? area
        : chosen && areaOfNode(flow.getState(), chosen);
      if (kept && isInSight(view, kept, was.width, was.height)) {
        void setViewport(broughtIntoSight(view, kept, width, height));
      }
    },
    [flow, setViewport],
  );

  useEffect(() => {
    if (!frame.current) return;
    let pending = 0;
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(pending);
      // React Flow measures its frame in an observer of its own, which comes first by then.
      pending = requestAnimationFrame(() => {
        const { width, height } = flow.getState();
        if (isTouched.current) keepInSight(before.current, { width, height });
        else show(0);
        before.current = { width, height };
      });
    });
    observer.observe(frame.current);
    return () => {
      cancelAnimationFrame(pending);
      observer.disconnect();
    };
  }, [show, keepInSight, flow]);

  // A command shows everything, once the boxes stand where it left them.
  const wish = useViewport((state) => state.wish);
  const seen = useRef(wish);
  useEffect(() => {
    if (wish === null || wish.node !== null || seen.current === wish) return;
    seen.current = wish;
    const pending = requestAnimationFrame(() => show(FIT_MILLISECONDS));
    return () => cancelAnimationFrame(pending);
  }, [wish, show]);

  const onTouch = useCallback(() => {
    isTouched.current = true;
  }, []);
  const fit = useCallback(() => show(FIT_MILLISECONDS), [show]);
  // React Flow measures after the first sight of the page, and what depends on it would jump.
  useLayoutEffect(() => {
    const { width = 0, height = 0 } = frame.current?.getBoundingClientRect() ?? {};
    setDrawn({ width, height });
  }, []);
  const { area } = drawing;
  const size = measured > 0 ? { width: measured, height } : drawn;
  const tooLarge = area !== null && size.width > 0 && isTooLarge(area, size.width, size.height);
  return { frame, onTouch, fit, isTooLarge: tooLarge };
}
