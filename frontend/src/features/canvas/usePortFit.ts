import { canConnect } from "@/document/canConnect";
import { useOpenLoop } from "@/state/document/context";
import { inOrder, useDrawnFrom, useMovingEdge } from "./handles";

interface PortFit {
  /** Why the edge that is being drawn cannot end here; null where it can, or while none is drawn. */
  blocked: string | null;
  isOpen: boolean;
}

export function usePortFit(node: string, port: string, isInput: boolean): PortFit {
  const { catalog, store } = useOpenLoop();
  const drawn = useDrawnFrom();
  const moved = useMovingEdge((state) => state.key);
  if (drawn === null) return { blocked: null, isOpen: false };
  if (drawn.node === node && drawn.port === port) return { blocked: null, isOpen: false };
  if (drawn.isOutput !== isInput) {
    return { blocked: "Connect an output to an input.", isOpen: false };
  }
  const [from, to] = inOrder(drawn, { node, port });
  const answer = canConnect(catalog, store.getState().document, from, to, moved);
  return { blocked: answer.ok ? null : answer.reason, isOpen: answer.ok };
}
