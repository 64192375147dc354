import { canConnect } from "@/document/canConnect";
import { useOpenLoop } from "@/state/document/context";
import { readDrawnFrom, useDrawnFrom } from "./handles";
import { useMovingEdge } from "./movingEdge";

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
  const start = readDrawnFrom(drawn);
  if (start.ref.node === node && start.ref.port === port) return { blocked: null, isOpen: false };
  if (start.isOutput !== isInput) {
    return { blocked: "Connect an output to an input.", isOpen: false };
  }
  const own = { node, port };
  const [from, to] = isInput ? [start.ref, own] : [own, start.ref];
  const answer = canConnect(catalog, store.getState().document, from, to, moved);
  return { blocked: answer.ok ? null : answer.reason, isOpen: answer.ok };
}
