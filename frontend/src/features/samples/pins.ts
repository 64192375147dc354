import { create } from "zustand";

export const usePins = create<{ pinned: string | null; pin: (prompt: string | null) => void }>()(
  (set) => ({ pinned: null, pin: (pinned) => set({ pinned }) }),
);
