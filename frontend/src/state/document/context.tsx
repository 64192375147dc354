/** The open loop for the components below: its document, its sync state, and the catalog. */
import { createContext, type ReactNode, useCallback, useContext, useMemo } from "react";
import { useStore } from "zustand";
import type { Catalog, ModeInfo } from "@/api/types";
import { modeNamed } from "@/catalog/modes";
import { identities } from "@/document/identities";
import { type Colors, chartColors, nodeColors } from "@/lib/colors";
import { deepEqual } from "@/lib/paths";
import { setValue } from "../commands/fields";
import type { LoopSync } from "../sync/LoopSync";
import type { SyncState, SyncStore } from "../sync/state";
import type { DocumentState, DocumentStore } from "./store";

export interface OpenLoop {
  loopId: string | null;
  runId: string | null;
  store: DocumentStore;
  syncStore: SyncStore;
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

/** Why the open loop takes no edits; null: it does. */
export function useEditRefusal(): string | null {
  return useDocument((state) => (state.isReadonly ? "The loop cannot be changed here" : null));
}

const known = new WeakMap<object, { document: DocumentState["document"]; colors: Colors }>();

function colorsOf({ catalog, store }: OpenLoop, document: DocumentState["document"]): Colors {
  const last = known.get(store);
  if (last?.document === document) return last.colors;
  const now = nodeColors(catalog, document.nodes, identities(catalog, document));
  const colors = last && deepEqual(last.colors, now) ? last.colors : now;
  known.set(store, { document, colors });
  return colors;
}

export function useNodeColors(): Colors {
  const open = useOpenLoop();
  return useStore(open.store, (state) => colorsOf(open, state.document));
}

export function useNodeColor(node: string): string {
  return useNodeColors()[node] ?? "var(--muted)";
}

export function useChartColors(shown: readonly string[]): Colors {
  const colors = useNodeColors();
  const key = shown.join("\n");
  return useMemo(() => chartColors(colors, key === "" ? [] : key.split("\n")), [colors, key]);
}

export function useSync<T>(selector: (state: SyncState) => T): T {
  return useStore(useOpenLoop().syncStore, selector);
}

/** The mode that the loop names; where it names none, the one that the server finds in its graph. */
export function useMode(): ModeInfo {
  const { catalog } = useOpenLoop();
  const named = useDocument((state) => state.document.rest.mode);
  const found = useSync((state) => state.check?.mode);
  return modeNamed(catalog, named ?? found ?? undefined);
}

export function useSetMode(): (mode: ModeInfo) => void {
  const { store } = useOpenLoop();
  return useCallback(
    (mode) =>
      store.dispatch(
        setValue,
        { path: ["mode"], value: mode.name },
        { label: `Mode: ${mode.title.toLowerCase()}` },
      ),
    [store],
  );
}
