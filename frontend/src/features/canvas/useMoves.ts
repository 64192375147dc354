/** Whether the graph is on the move under a hand: it is then one picture that is shifted, and drawn anew where it rests. */
import type { Viewport } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useRef } from "react";
import { create } from "zustand";

export const useMoving = create<{ isMoving: boolean }>()(() => ({ isMoving: false }));

/** How much larger or smaller the picture may be than it was drawn before it is drawn anew. */
const STRETCH = 1.5;

interface Moves {
  onMove: (event: unknown, view: Viewport) => void;
  onMoveEnd: () => void;
}

/** @param frame tells styles by `data-moving` */
export function useMoves(frame: RefObject<HTMLElement | null>): Moves {
  const drawnAt = useRef(1);
  const set = useCallback(
    (isMoving: boolean) => {
      frame.current?.toggleAttribute("data-moving", isMoving);
      useMoving.setState({ isMoving });
    },
    [frame],
  );
  const onMove = useCallback(
    (event: unknown, { zoom }: Viewport) => {
      // A move that nobody makes by hand is over at once.
      if (!event) return;
      const { isMoving } = useMoving.getState();
      const stretch = zoom / drawnAt.current;
      if (!isMoving) {
        drawnAt.current = zoom;
        set(true);
      } else if (stretch > STRETCH || stretch < 1 / STRETCH) set(false);
    },
    [set],
  );
  const onMoveEnd = useCallback(() => set(false), [set]);
  useEffect(() => () => useMoving.setState({ isMoving: false }), []);
  return { onMove, onMoveEnd };
}
