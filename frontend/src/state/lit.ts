/** What of the graph is lit while all else is dimmed: nodes that were searched for, or the way of a row. */
import { useMemo } from "react";
import { create } from "zustand";
import { type FoundNode, findNodes } from "@/document/findNodes";
import { type Lineage, lineageOf } from "@/graph/lineage";
import { useFold } from "@/state/useGroups";
import { useDocument, useOpenLoop } from "./document/context";

type Asked = { kind: "find"; text: string } | { kind: "row"; node: string };

export const useAsked = create<{ asked: Asked | null }>()(() => ({ asked: null }));

export function startFinding(): void {
  useAsked.setState({ asked: { kind: "find", text: "" } });
}

/** Lights what the rows of a node come from, and what is made of them, up to the loss. */
export function followRow(node: string): void {
  useAsked.setState({ asked: { kind: "row", node } });
}

export function unlight(): void {
  useAsked.setState({ asked: null });
}

interface Lit {
  nodes: ReadonlySet<string>;
  edges: ReadonlySet<string> | null;
}

/** Null where nothing is asked for: all is drawn as ever. */
export const useLit = create<{ lit: Lit | null }>()(() => ({ lit: null }));

export function useFound(text: string): FoundNode[] {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  return useMemo(() => findNodes(catalog, document, text), [catalog, document, text]);
}

export function useLineage(node: string): Lineage {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  return useMemo(() => lineageOf(catalog, document, node), [catalog, document, node]);
}

export function useIsDimmed(node: string): boolean {
  const { cards } = useFold();
  const members = cards.find(({ id }) => id === node)?.members ?? [node];
  return useLit(({ lit }) => lit !== null && !members.some((id) => lit.nodes.has(id)));
}

export function useIsEdgeDimmed(keys: readonly string[]): boolean {
  return useLit(({ lit }) => {
    if (lit === null) return false;
    return !keys.some((key) => lit.edges?.has(key) ?? false);
  });
}
