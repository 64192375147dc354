import { useCallback, useEffect, useRef, useState } from "react";

const PASSING = 120;

interface PointedAt {
  isPointedAt: boolean;
  pointing: { onPointerEnter: () => void; onPointerLeave: () => void };
  /** Until the pointer comes again: what it was on is gone, so that nothing tells of its leaving. */
  forget: () => void;
}

export function usePointedAt(): PointedAt {
  const [isPointedAt, set] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const onPointerEnter = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set(true), PASSING);
  };
  const forget = useCallback(() => {
    clearTimeout(timer.current);
    set(false);
  }, []);
  return { isPointedAt, pointing: { onPointerEnter, onPointerLeave: forget }, forget };
}
