import { useReactFlow } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useRef } from "react";
import { FIT } from "./fit";

interface FitOnResize {
  frame: RefObject<HTMLElement | null>;
  onTouch: () => void;
}

/** Keeps the whole graph in view while the panels around it settle, until the user touches it. */
export function useFitOnResize(): FitOnResize {
  const frame = useRef<HTMLElement>(null);
  const isTouched = useRef(false);
  const { fitView } = useReactFlow();
  useEffect(() => {
    if (!frame.current) return;
    let pending = 0;
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(pending);
      // React Flow measures its frame in an observer of its own, which comes first by then.
      pending = requestAnimationFrame(() => {
        if (!isTouched.current) void fitView(FIT);
      });
    });
    observer.observe(frame.current);
    return () => {
      cancelAnimationFrame(pending);
      observer.disconnect();
    };
  }, [fitView]);
  const onTouch = useCallback(() => {
    isTouched.current = true;
  }, []);
  return { frame, onTouch };
}
