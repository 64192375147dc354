/** Asks the canvas, from anywhere on the page, to bring the whole graph into view. */
import { create } from "zustand";

interface Viewport {
  /** Counts the wishes; the canvas follows each new one. */
  fits: number;
  fit: () => void;
}

export const useViewport = create<Viewport>()((set) => ({
  fits: 0,
  fit: () => set(({ fits }) => ({ fits: fits + 1 })),
}));
