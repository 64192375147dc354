import { useEffect } from "react";
import { useLocation, useSearch } from "wouter";
import { useOpenLoop } from "@/document/context";
import { useSelection } from "@/session/selection";
import { nodeOf } from "@/session/useLoopSearch";

/** A node that the address names is selected and brought into view, once; then the address is the loop's own. */
export function useNodeInAddress(): void {
  const { store } = useOpenLoop();
  const node = nodeOf(useSearch());
  const [path, navigate] = useLocation();
  useEffect(() => {
    if (node === null) return;
    navigate(path, { replace: true });
    if (!(node in store.getState().document.nodes)) return;
    // The canvas measures its boxes first.
    requestAnimationFrame(() => {
      useSelection.getState().select({ nodes: [node] });
      useSelection.getState().focusField(node, null);
    });
  }, [node, path, navigate, store]);
}
