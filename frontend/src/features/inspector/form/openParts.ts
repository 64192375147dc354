/** Which parts of forms were opened or closed by hand in this tab, by their names. */
import { create } from "zustand";

interface OpenParts {
  open: Readonly<Record<string, boolean>>;
  toggle: (part: string, isOpen: boolean) => void;
}

export const useOpenParts = create<OpenParts>()((set, get) => ({
  open: {},
  toggle: (part, isOpen) => set({ open: { ...get().open, [part]: isOpen } }),
}));
