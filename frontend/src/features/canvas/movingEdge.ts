/** The edge whose end is being moved: its old place counts as free for the ports that say what fits. */
import { create } from "zustand";

interface MovingEdge {
  key: string | null;
}

export const useMovingEdge = create<MovingEdge>()(() => ({ key: null }));
