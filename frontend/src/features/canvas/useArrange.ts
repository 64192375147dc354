import { useReactFlow } from "@xyflow/react";
import { useCallback } from "react";
import { moveNodes } from "@/document/commands/moveNodes";
import { useOpenLoop } from "@/document/context";
import { useSelection } from "@/session/selection";
import { FIT_SOFTLY } from "./fit";
import { arrange } from "./layout";

/** Lays out the selection, or everything where fewer than two nodes are selected; one undo step. */
export function useArrange(): () => void {
  const { catalog, store, runId } = useOpenLoop();
  const { fitView } = useReactFlow();
  return useCallback(() => {
    const { nodes: chosen } = useSelection.getState();
    const { document, dispatch } = store.getState();
    const isPart = chosen.length > 1;
    const positions = arrange(
      catalog,
      document,
      runId !== null,
      isPart ? chosen : Object.keys(document.nodes),
    );
    dispatch(moveNodes, { positions }, { label: "Arrange" });
    if (!isPart) requestAnimationFrame(() => void fitView(FIT_SOFTLY));
  }, [catalog, store, runId, fitView]);
}
