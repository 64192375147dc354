import { useMemo } from "react";
import { errorMessage } from "@/api/client";
import { moveNodes } from "@/document/commands/moveNodes";
import { useOpenLoop } from "@/document/context";
import { arrange, fetchArranging } from "@/document/layout";
import type { Point } from "@/document/types";
import { useSelection } from "./selection";
import { toast } from "./toast";
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
    const plainly = async () => {
      await fetchArranging();
      const { nodes: chosen } = useSelection.getState();
      const { document } = store.getState();
      const isPart = chosen.length > 1;
      const ids = isPart ? chosen : Object.keys(document.nodes);
      move(arrange(catalog, document, ids), "Arrange", !isPart);
    };
    const byPools = async () => {
      const [{ arrangePools }] = await Promise.all([
        import("@/document/arrangePools"),
        fetchArranging(),
      ]);
      move(arrangePools(catalog, store.getState().document), "Tidy by pools", true);
    };
    const tell = (error: unknown) =>
      toast.error("Nothing was arranged.", { description: errorMessage(error) });
    return {
      arrange: () => void plainly().catch(tell),
      arrangePools: () => void byPools().catch(tell),
    };
  }, [catalog, store]);
}
