import { useMemo } from "react";
import { type Alignment, align, type Direction, distribute } from "@/document/align";
import { boxesOf } from "@/document/boxes";
import { moveNodes } from "@/document/commands/moveNodes";
import { useOpenLoop } from "@/document/context";
import { useSelection } from "./selection";

/** Lines up the selected nodes; one undo step. */
export function useAlign() {
  const { catalog, store } = useOpenLoop();
  return useMemo(() => {
    const boxes = () => boxesOf(catalog, store.getState().document, useSelection.getState().nodes);
    const { dispatch } = store.getState();
    return {
      align: (by: Alignment, label: string) =>
        dispatch(moveNodes, { positions: align(boxes(), by) }, { label }),
      distribute: (along: Direction, label: string) =>
        dispatch(moveNodes, { positions: distribute(boxes(), along) }, { label }),
    };
  }, [catalog, store]);
}
