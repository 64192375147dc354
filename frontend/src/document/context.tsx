/** The open loop for the components below: its document, its sync state, and the catalog. */
import { createContext, type ReactNode, useContext } from "react";
import { useStore } from "zustand";
import type { Catalog } from "@/api/types";
import type { DocumentState, DocumentStore } from "./store";
import type { LoopSync } from "./sync/LoopSync";
import type { SyncState, SyncStore } from "./sync/state";

export interface OpenLoop {
  loopId: string | null;
  runId: string | null;
  store: DocumentStore;
  syncStore: SyncStore;
  /** Null where the loop is only looked at. */
  sync: LoopSync | null;
  catalog: Catalog;
}

const OpenLoopContext = createContext<OpenLoop | null>(null);

export function OpenLoopProvider({ value, children }: { value: OpenLoop; children: ReactNode }) {
  return <OpenLoopContext value={value}>{children}</OpenLoopContext>;
}

export function useOpenLoop(): OpenLoop {
  const value = useContext(OpenLoopContext);
  if (value === null) throw new Error("This component belongs inside an open loop.");
  return value;
}

export function useCatalog(): Catalog {
  return useOpenLoop().catalog;
}

export function useDocument<T>(selector: (state: DocumentState) => T): T {
  return useStore(useOpenLoop().store, selector);
}

export function useSync<T>(selector: (state: SyncState) => T): T {
  return useStore(useOpenLoop().syncStore, selector);
}
