/** Which dialog of this tab is open. */
import { create } from "zustand";

export type DialogName =
  | "commands"
  | "shortcuts"
  | "gallery"
  | "newLoop"
  | "signIn"
  | "confirmRun"
  | "history"
  | null;

interface Dialogs {
  open: DialogName;
  show: (name: DialogName) => void;
}

export const useDialogs = create<Dialogs>()((set) => ({
  open: null,
  show: (open) => set({ open }),
}));
