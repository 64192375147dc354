import { create } from "zustand";
import type { PortRef } from "@/document/types";

export type DialogName =
  | "commands"
  | "shortcuts"
  | "gallery"
  | "newLoop"
  | "saveBlock"
  | "signIn"
  | "confirmRun"
  | "history"
  | "tryValues"
  | "jobFile"
  | null;

export const useDialogs = create<{ open: DialogName }>()(() => ({ open: null }));

export function showDialog(open: DialogName): void {
  useDialogs.setState({ open });
}

/** The setting for which other values are to be tried, by its path in the loop; null: none was chosen. */
export const useTried = create<{ path: string | null }>()(() => ({ path: null }));

export function tryValues(path: string | null): void {
  useTried.setState({ path });
  showDialog("tryValues");
}

/** What the help sheet shows: the page of a code, or what a node computes; it is closed if both are null. */
type Explaining = { code: string | null; node: string | null };

const CLOSED: Explaining = { code: null, node: null };

export const useExplaining = create<Explaining>()(() => CLOSED);

export function explain(what: Partial<Explaining>): void {
  useExplaining.setState({ ...CLOSED, ...what });
}

/**
 * Whether this tab shows the loop's hardware instead of its graph, and whether the list of presets or the form of a
 * GPU is open.
 */
export const useHardwareView = create(() => ({
  isOpen: false,
  isPicking: false,
  isDescribing: false,
}));

export function showHardware(isOpen: boolean): void {
  useHardwareView.setState({ isOpen });
}

export function showHardwarePresets(isPicking: boolean): void {
  useHardwareView.setState({ isPicking });
}

export function showGpuForm(isDescribing: boolean): void {
  useHardwareView.setState({ isDescribing });
}

export interface AddRequest {
  screen: { x: number; y: number };
  flow: { x: number; y: number };
  isUnplaced?: boolean;
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
