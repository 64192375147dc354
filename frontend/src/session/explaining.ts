/** What the sheet of help shows: the page of a code, or what a node computes; neither: it is closed. */
import { create } from "zustand";

interface Explaining {
  code: string | null;
  node: string | null;
  explain: (what: { code: string } | { node: string }) => void;
  close: () => void;
}

const NOTHING = { code: null, node: null } as const;

export const useExplaining = create<Explaining>()((set) => ({
  ...NOTHING,
  explain: (what) => set({ ...NOTHING, ...what }),
  close: () => set(NOTHING),
}));
