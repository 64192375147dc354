import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useCallback } from "react";
import type { Block, KindInfo } from "@/api/types";
import { NODE_WIDTH } from "@/graph/geometry";
import { toLoop } from "@/state/canvas";
import { useOpenLoop } from "@/state/document/context";
import { useAddNode } from "@/state/useAddNode";

export function useAddInMiddle(): (kind: KindInfo) => void {
  const middleOf = useMiddle();
  const add = useAddNode();
  return useCallback(
    (kind) => {
      const middle = middleOf();
      void add({ kind, at: { x: middle.x - NODE_WIDTH / 2, y: middle.y - 80 }, isUnplaced: true });
    },
    [middleOf, add],
  );
}

export function useInsertInMiddle(): (block: Block) => void {
  const middleOf = useMiddle();
  const { catalog, store } = useOpenLoop();
  return useCallback(
    (block) => {
      const at = middleOf();
      void import("@/state/addBlock").then(({ addBlock }) =>
        addBlock({ catalog, store }, { block, at, isUnplaced: true }),
      );
    },
    [middleOf, catalog, store],
  );
}

/** The middle of the view, as a place in the loop. */
function useMiddle(): () => { x: number; y: number } {
  const { screenToFlowPosition } = useReactFlow();
  const flowStore = useStoreApi();
  return useCallback(() => {
    const box = flowStore.getState().domNode?.getBoundingClientRect();
    return toLoop(
      screenToFlowPosition({
        x: (box?.left ?? 0) + (box?.width ?? 0) / 2,
        y: (box?.top ?? 0) + (box?.height ?? 0) / 2,
      }),
    );
  }, [screenToFlowPosition, flowStore]);
}
