/** The open loop for the components below: its document, its sync state, and the catalog. */
import { createContext, type ReactNode, useContext } from "react";
import { useStore } from "zustand";
import type { Catalog } from "@/api/types";
import { nodeColors } from "@/lib/colors";
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

/** The colour of every node, the same in the graph, the charts, the timeline and the memory. */
export function useNodeColors(): Readonly<Record<string, string>> {
  const { catalog, store } = useOpenLoop();
  return nodeColors(
    catalog,
    useStore(store, (state) => state.document.nodes),
  );
}

export function useNodeColor(node: string): string {
  const { catalog, store } = useOpenLoop();
  return useStore(
    store,
    (state) => nodeColors(catalog, state.document.nodes)[node] ?? "var(--muted)",
  );
}

export function useSync<T>(selector: (state: SyncState) => T): T {
  return useStore(useOpenLoop().syncStore, selector);
}
