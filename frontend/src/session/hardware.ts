/** Whether the hardware of the loop is in sight instead of its graph, and its list of presets open. Of this tab. */
import { create } from "zustand";

interface HardwareView {
  isOpen: boolean;
  isPicking: boolean;
  open: () => void;
  close: () => void;
  setPicking: (isPicking: boolean) => void;
}

export const useHardwareView = create<HardwareView>()((set) => ({
  isOpen: false,
  isPicking: false,
  open: () => set({ isOpen: true }),
  close: () => set({ isOpen: false }),
  setPicking: (isPicking) => set({ isPicking }),
}));
