import { useCallback, useEffect, useRef, useState } from "react";

/** Milliseconds that the pointer must stay: until then it only passes over. */
const PASSING = 120;

interface PointedAt {
  isPointedAt: boolean;
  pointing: { onPointerEnter: () => void; onPointerLeave: () => void };
  /** Not pointed at until the pointer enters again, for an element whose removal sends no leave event. */
  forget: () => void;
}

export function usePointedAt(): PointedAt {
  const [isPointedAt, setPointedAt] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const onPointerEnter = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setPointedAt(true), PASSING);
  };
  const forget = useCallback(() => {
    clearTimeout(timer.current);
    setPointedAt(false);
  }, []);
  return { isPointedAt, pointing: { onPointerEnter, onPointerLeave: forget }, forget };
}
