import { useMemo } from "react";
import { arrangePools } from "@/document/arrangePools";
import { moveNodes } from "@/document/commands/moveNodes";
import { useOpenLoop } from "@/document/context";
import { arrange } from "@/document/layout";
import type { Point } from "@/document/types";
import { useSelection } from "./selection";
import { useViewport } from "./viewport";

interface Arranging {
  /** Lays out the selection, or everything where fewer than two nodes are selected. */
  arrange: () => void;
  /** Lays out everything pool by pool, so that each frame holds its own nodes alone. */
  arrangePools: () => void;
}

/** Each is one undo step. */
export function useArrange(): Arranging {
  const { catalog, store } = useOpenLoop();
  return useMemo(() => {
    const move = (positions: Record<string, Point>, label: string, isWhole: boolean) => {
      store.getState().dispatch(moveNodes, { positions }, { label });
      if (isWhole) useViewport.getState().fit();
    };
    return {
      arrange: () => {
        const { nodes: chosen } = useSelection.getState();
        const { document } = store.getState();
        const isPart = chosen.length > 1;
        const ids = isPart ? chosen : Object.keys(document.nodes);
        move(arrange(catalog, document, ids), "Arrange", !isPart);
      },
      arrangePools: () =>
        move(arrangePools(catalog, store.getState().document), "Tidy by pools", true),
    };
  }, [catalog, store]);
}
