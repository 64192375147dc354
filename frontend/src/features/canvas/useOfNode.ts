import { useMemo } from "react";
import type { Catalog } from "@/api/types";
import type { LoopDocument } from "@/document/types";
import { useDocument, useOpenLoop } from "@/state/document/context";

/** What is read of a node; read again when the node changes, and not when others do. */
export function useOfNode<T>(
  node: string,
  read: (catalog: Catalog, document: LoopDocument, node: string) => T,
): T {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is what is read of the document
  return useMemo(
    () => read(catalog, store.getState().document, node),
    [catalog, store, node, data],
  );
}
