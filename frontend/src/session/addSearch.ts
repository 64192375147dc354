/** The search that adds a node: where it stands, and from which port it was opened. */
import { create } from "zustand";
import type { PortRef } from "@/document/types";

export interface AddRequest {
  /** Where the list opens, in the window. */
  screen: { x: number; y: number };
  /** Where the node goes, on the canvas. */
  flow: { x: number; y: number };
  from?: PortRef & { isOutput: boolean };
  /** The edge that the node is put in, by its key. */
  edge?: string;
}

interface AddSearchState {
  request: AddRequest | null;
  show: (request: AddRequest) => void;
  hide: () => void;
}

export const useAddSearch = create<AddSearchState>()((set) => ({
  request: null,
  show: (request) => set({ request }),
  hide: () => set({ request: null }),
}));
