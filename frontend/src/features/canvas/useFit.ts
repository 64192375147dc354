import { useReactFlow, useStoreApi } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from "react";
import type { Drawing } from "@/graph/routes";
import type { Box } from "@/graph/shapes";
import { useDetail, useViewport } from "@/state/canvas";
import { useSelection } from "@/state/selection";
import {
  broughtIntoSight,
  type Draw,
  FIT_MILLISECONDS,
  isInSight,
  opensAt,
  planFit,
  READABLE,
  type Room,
  squeezeInto,
  turned,
} from "./fit";
import { areaOfNode } from "./useReveal";

interface Fit {
  onTouch: () => void;
  fit: () => void;
  /** A zoom by hand is over: from one kind of cards to the other, about the pointer where one turned the wheel. */
  onRest: () => void;
  onWheel: (event: React.WheelEvent) => void;
}

interface Size {
  width: number;
  height: number;
}

interface Shown {
  boxes: readonly Box[];
  draw: Draw;
  isFramed: boolean;
  drawing: Drawing;
}

const AGO = 600;

/**
 * Brings the whole graph into view: while the panels around it settle, until the user touches it, and
 * whenever a command asks for it.
 *
 * @param shown all that is to be seen
 */
export function useFit(frame: RefObject<HTMLElement | null>, shown: Shown): Fit {
  const isTouched = useRef(false);
  const now = useRef(shown);
  now.current = shown;
  const { setViewport } = useReactFlow();
  const flow = useStoreApi();

  const show = useCallback(
    (duration: number) => {
      const room = roomOf(frame.current, now.current.isFramed);
      const planned = room && planFit(now.current.boxes, now.current.draw, room);
      if (!planned) return;
      const { squeeze, view } = planned;
      const isSame = (useDetail.getState().squeeze === null) === (squeeze === null);
      useDetail.setState({ squeeze });
      void setViewport(view, { duration: isSame ? duration : 0 });
    },
    [frame, setViewport],
  );

  // A panel that opens beside a graph that was moved by hand covers nothing that was seen, where all can be seen.
  const before = useRef<Size | null>(null);
  const keepInSight = useCallback(
    (was: Size | null, { width, height }: Size) => {
      const [x, y, zoom] = flow.getState().transform;
      const view = { x, y, zoom };
      const { area } = now.current.drawing;
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

  // Each graph begins with whole cards, and is fitted before it is seen.
  useLayoutEffect(() => {
    useDetail.setState({ squeeze: null });
    show(0);
    return () => useDetail.setState({ squeeze: null });
  }, [show]);

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
  }, [frame, show, keepInSight, flow]);

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
  // Who adds or takes away nodes looks at them: no panel that opens fits the graph anew.
  const { length } = shown.boxes;
  const began = useRef(length);
  useEffect(() => {
    if (length !== began.current) onTouch();
  }, [length, onTouch]);
  const fit = useCallback(() => show(FIT_MILLISECONDS), [show]);

  const wheel = useRef({ x: 0, y: 0, at: Number.NEGATIVE_INFINITY });
  const onWheel = useCallback((event: React.WheelEvent) => {
    wheel.current = { x: event.clientX, y: event.clientY, at: event.timeStamp };
  }, []);
  const onRest = useCallback(() => {
    const room = roomOf(frame.current, now.current.isFramed);
    const box = frame.current?.getBoundingClientRect();
    const { squeeze } = useDetail.getState();
    const [x, y, zoom] = flow.getState().transform;
    const isToTurn = squeeze ? opensAt(squeeze, zoom) : zoom < READABLE;
    if (!room || !box || !isToTurn || now.current.boxes.length === 0) return;
    const next = squeeze ? null : squeezeInto(now.current.boxes, now.current.draw, room);
    const isWheel = performance.now() - wheel.current.at < AGO;
    const anchor = isWheel
      ? { x: wheel.current.x - box.left, y: wheel.current.y - box.top }
      : { x: room.width / 2, y: room.height / 2 };
    useDetail.setState({ squeeze: next });
    void setViewport(turned({ x, y, zoom }, anchor, squeeze, next));
  }, [frame, flow, setViewport]);

  return { onTouch, fit, onRest, onWheel };
}

function roomOf(frame: HTMLElement | null, isFramed: boolean): Room | null {
  const box = frame?.getBoundingClientRect();
  if (!frame || !box || box.width === 0) return null;
  const over = frame.closest("main")?.querySelector("[data-over-graph]")?.getBoundingClientRect();
  const { width, height } = box;
  if (!over || over.width === 0) return { width, height, isFramed };
  const corner = { width: box.right - over.left + 6, height: over.bottom - box.top + 6 };
  return { width, height, corner, isFramed };
}
