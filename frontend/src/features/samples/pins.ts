import { create } from "zustand";

/** The prompt that is looked at over time, in this tab. */
export const usePins = create<{ pinned: string | null; pin: (prompt: string | null) => void }>()(
  (set) => ({ pinned: null, pin: (pinned) => set({ pinned }) }),
);
