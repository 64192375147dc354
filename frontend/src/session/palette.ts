/** Whether the list of nodes lies open over the graph, in this tab. To keep it open is a preference. */
import { create } from "zustand";
import { usePreferences } from "./preferences";

interface PaletteState {
  isOpen: boolean;
  /** Asked for by its key or its button: it takes the focus, and stays until it is left or asked for again. */
  isCalled: boolean;
  /** The pointer or the focus came to it. */
  peek: () => void;
  close: () => void;
  /** Opens it where it is closed, and lets go of one that is kept open. */
  toggle: () => void;
}

const CLOSED = { isOpen: false, isCalled: false };

export const usePalette = create<PaletteState>()((set, get) => ({
  ...CLOSED,
  peek: () => {
    if (!get().isOpen) set({ isOpen: true, isCalled: false });
  },
  close: () => set(CLOSED),
  toggle: () => set(get().isCalled ? CLOSED : { isOpen: true, isCalled: true }),
}));

/** Null: nobody said; then the room decides. */
export function keepPalette(isPinned: boolean): void {
  usePreferences.getState().set({ isPalettePinned: isPinned });
  usePalette.getState().close();
}
