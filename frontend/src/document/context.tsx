/** The open loop for the components below: its document, its sync state, and the catalog. */
import { createContext, type ReactNode, useContext } from "react";
import { useStore } from "zustand";
import type { Catalog } from "@/api/types";
import { type ColorMemory, createColorMemory, nodeColors } from "@/lib/colors";
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

const colorMemories = new WeakMap<object, ColorMemory>();

function colorsOf({ catalog, store }: OpenLoop, nodes: DocumentState["document"]["nodes"]) {
  let memory = colorMemories.get(store);
  if (!memory) {
    memory = createColorMemory();
    colorMemories.set(store, memory);
  }
  return nodeColors(catalog, nodes, memory);
}

/** The colour of every node, kept while the loop is open and the same in the graph, the charts, the timeline and the memory. */
export function useNodeColors(): Readonly<Record<string, string>> {
  const open = useOpenLoop();
  return colorsOf(
    open,
    useStore(open.store, (state) => state.document.nodes),
  );
}

export function useNodeColor(node: string): string {
  const open = useOpenLoop();
  return useStore(
    open.store,
    (state) => colorsOf(open, state.document.nodes)[node] ?? "var(--muted)",
  );
}

export function useSync<T>(selector: (state: SyncState) => T): T {
  return useStore(useOpenLoop().syncStore, selector);
}
