import { create } from "zustand";
import type { PortRef } from "@/document/types";

export type DialogName =
  | "commands"
  | "shortcuts"
  | "gallery"
  | "newLoop"
  | "signIn"
  | "confirmRun"
  | "history"
  | null;

export const useDialogs = create<{ open: DialogName }>()(() => ({ open: null }));

export function showDialog(open: DialogName): void {
  useDialogs.setState({ open });
}

/** What the sheet of help shows: the page of a code, or what a node computes; neither: it is closed. */
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

/** Whether the hardware of the loop is in sight instead of its graph, and its list of presets open. Of this tab. */
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

export interface AddRequest {
  screen: { x: number; y: number };
  flow: { x: number; y: number };
  from?: PortRef & { isOutput: boolean };
  edge?: string;
}

export const useAddSearch = create<{ request: AddRequest | null }>()(() => ({ request: null }));

export function showAddSearch(request: AddRequest): void {
  useAddSearch.setState({ request });
}

export function hideAddSearch(): void {
  useAddSearch.setState({ request: null });
}
