import { useCallback } from "react";
import { errorMessage } from "@/api/client";
import { moveNodes } from "@/document/commands/moveNodes";
import { useOpenLoop } from "@/document/context";
import { arrange, fetchArranging } from "@/document/layout";
import { useSelection } from "./selection";
import { toast } from "./toast";
import { useViewport } from "./viewport";

/** Lays out the selection, or everything where fewer than two nodes are selected; one undo step. */
export function useArrange(): () => void {
  const { catalog, store } = useOpenLoop();
  const work = useCallback(async () => {
    await fetchArranging();
    const { nodes: chosen } = useSelection.getState();
    const { document, dispatch } = store.getState();
    const isPart = chosen.length > 1;
    const positions = arrange(catalog, document, isPart ? chosen : Object.keys(document.nodes));
    dispatch(moveNodes, { positions }, { label: "Arrange" });
    if (!isPart) useViewport.getState().fit();
  }, [catalog, store]);
  return useCallback(() => {
    work().catch((error: unknown) =>
      toast.error("Nothing was arranged.", { description: errorMessage(error) }),
    );
  }, [work]);
}
