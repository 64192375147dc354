/** Asks the canvas, from anywhere on the page, to show the whole graph, or one node of it. */
import { create } from "zustand";

interface Viewport {
  /** The latest wish; `node` is null for the whole graph. A wish that was had before is had again. */
  wish: { node: string | null } | null;
  fit: () => void;
  reveal: (node: string) => void;
}

export const useViewport = create<Viewport>()((set) => ({
  wish: null,
  fit: () => set({ wish: { node: null } }),
  reveal: (node) => set({ wish: { node } }),
}));
