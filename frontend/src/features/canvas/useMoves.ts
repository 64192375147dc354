/** Whether the graph is on the move under a hand: it is then one picture that is shifted, and drawn anew where it rests. */
import type { Viewport } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useRef } from "react";
import { create } from "zustand";

export const useMoving = create<{ isMoving: boolean }>()(() => ({ isMoving: false }));

const STRETCH = 2;
const REST = 150;

/**
 * @param frame tells styles by `data-moving`
 * @param onRest whenever it rests, also where the page moved it
 */
export function useMoves(frame: RefObject<HTMLElement | null>, onRest?: () => void) {
  const drawnAt = useRef(1);
  const resting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const onMove = useCallback((event: unknown, { zoom }: Viewport) => {
    if (!event) return;
    clearTimeout(resting.current);
    if (!useMoving.getState().isMoving) drawnAt.current = zoom;
    const stretch = zoom / drawnAt.current;
    useMoving.setState({ isMoving: stretch < STRETCH && stretch > 1 / STRETCH });
  }, []);
  const onMoveEnd = useCallback(() => {
    clearTimeout(resting.current);
    resting.current = setTimeout(() => {
      rest();
      onRest?.();
    }, REST);
  }, [onRest]);
  useEffect(() => {
    const leave = useMoving.subscribe(({ isMoving }) =>
      frame.current?.toggleAttribute("data-moving", isMoving),
    );
    return () => {
      leave();
      clearTimeout(resting.current);
      rest();
    };
  }, [frame]);
  return { onMove, onMoveEnd };
}

function rest() {
  useMoving.setState({ isMoving: false });
}
