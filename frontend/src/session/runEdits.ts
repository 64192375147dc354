/** Changes to a watched run that were made in the form and not sent yet. */
import { create } from "zustand";
import type { Json } from "@/api/types";

interface RunEdits {
  changes: Record<string, Json>;
  set: (path: string, value: Json) => void;
  clear: () => void;
}

export const useRunEdits = create<RunEdits>()((set, get) => ({
  changes: {},
  set: (path, value) => set({ changes: { ...get().changes, [path]: value } }),
  clear: () => set({ changes: {} }),
}));
