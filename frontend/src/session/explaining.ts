/** What the sheet of help shows: the page of a code, what a node computes, or nothing. */
import { create } from "zustand";

export type Explained = { what: "code"; code: string } | { what: "node"; node: string } | null;

interface Explaining {
  shown: Explained;
  show: (shown: Explained) => void;
}

export const useExplaining = create<Explaining>()((set) => ({
  shown: null,
  show: (shown) => set({ shown }),
}));
