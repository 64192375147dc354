import { useEffect, useRef, useState } from "react";

/** A pointer that only passes by opens nothing. */
const PASSING = 120;

interface PointedAt {
  isPointedAt: boolean;
  pointing: { onPointerEnter: () => void; onPointerLeave: () => void };
}

/** Whether the pointer rests on something. */
export function usePointedAt(): PointedAt {
  const [isPointedAt, set] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const onPointerEnter = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set(true), PASSING);
  };
  const onPointerLeave = () => {
    clearTimeout(timer.current);
    set(false);
  };
  return { isPointedAt, pointing: { onPointerEnter, onPointerLeave } };
}
