/** What is selected in this tab, and where the next problem click leads. Never saved, never undone. */
import { create } from "zustand";
import { edgeIndex } from "@/document/edges";
import type { PhasePath } from "@/document/phases";
import type { LoopDocument } from "@/document/types";

export interface FieldFocus {
  node: string | null;
  field: string | null;
  /** A new number for each request, so that asking twice works twice. */
  request: number;
}

export interface Selection {
  nodes: readonly string[];
  edges: readonly string[];
  phase: PhasePath | null;
  entry: { list: string; index: number } | null;
  focus: FieldFocus | null;
  select: (what: Partial<Pick<Selection, "nodes" | "edges" | "phase" | "entry">>) => void;
  focusField: (node: string | null, field: string | null) => void;
  clear: () => void;
  /** What the document no longer has is not selected. */
  letGo: (document: LoopDocument) => void;
}

const NOTHING = { nodes: [], edges: [], phase: null, entry: null } as const;

export const useSelection = create<Selection>()((set, get) => ({
  ...NOTHING,
  focus: null,
  select: (what) => set({ ...NOTHING, ...what }),
  focusField: (node, field) =>
    set({ focus: { node, field, request: (get().focus?.request ?? 0) + 1 } }),
  clear: () => set(NOTHING),
  letGo: (document) => {
    const { nodes, edges } = get();
    const kept = {
      nodes: nodes.filter((id) => id in document.nodes),
      edges: edges.filter((key) => edgeIndex(document, key) >= 0),
    };
    if (kept.nodes.length < nodes.length || kept.edges.length < edges.length) set(kept);
  },
}));
