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
}

const NOTHING = { nodes: [], edges: [], phase: null, entry: null } as const;

export const useSelection = create<Selection>()(() => ({ ...NOTHING, focus: null }));

export function select(what: Partial<Omit<Selection, "focus">>): void {
  useSelection.setState({ ...NOTHING, ...what });
}

export function clearSelection(): void {
  useSelection.setState(NOTHING);
}

/** Asks the settings to show a field; null: the node or the loop as a whole. */
export function focusField(node: string | null, field: string | null): void {
  const request = (useSelection.getState().focus?.request ?? 0) + 1;
  useSelection.setState({ focus: { node, field, request } });
}

/** Selects a node and asks for one of its fields; null: nothing is to be shown. */
export function showField(node: string | null | undefined, field: string | null = null): void {
  if (!node) return;
  select({ nodes: [node] });
  focusField(node, field);
}

/** What the document no longer has is not selected. */
export function dropMissing(document: LoopDocument): void {
  const { nodes, edges } = useSelection.getState();
  const kept = {
    nodes: nodes.filter((id) => id in document.nodes),
    edges: edges.filter((key) => edgeIndex(document, key) >= 0),
  };
  if (kept.nodes.length < nodes.length || kept.edges.length < edges.length) {
    useSelection.setState(kept);
  }
}
