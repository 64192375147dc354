import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useCallback } from "react";
import type { KindInfo } from "@/api/types";
import { NODE_WIDTH } from "@/graph/geometry";
import { toLoop } from "@/state/canvas";
import { useAddNode } from "@/state/useAddNode";

export function useAddInMiddle(): (kind: KindInfo) => void {
  const { screenToFlowPosition } = useReactFlow();
  const flowStore = useStoreApi();
  const add = useAddNode();
  return useCallback(
    (kind) => {
      const box = flowStore.getState().domNode?.getBoundingClientRect();
      const middle = toLoop(
        screenToFlowPosition({
          x: (box?.left ?? 0) + (box?.width ?? 0) / 2,
          y: (box?.top ?? 0) + (box?.height ?? 0) / 2,
        }),
      );
      const wish = { x: middle.x - NODE_WIDTH / 2, y: middle.y - 80 };
      add({ kind, at: wish, isUnplaced: true });
    },
    [screenToFlowPosition, flowStore, add],
  );
}
