import { useReactFlow } from "@xyflow/react";
import { useMemo } from "react";
import { edgeIndex } from "@/document/edges";
import { spliceOf } from "@/document/splice";
import { poolAt } from "@/graph/frames";
import { boxesOf } from "@/graph/geometry";
import { aimAt, clearDropTarget, toLoop, useDropTarget } from "@/state/canvas";
import { useOpenLoop } from "@/state/document/context";
import { edgeUnder } from "./edgeUnder";

/** Where a node that is dragged from the list would be put, besides its place: in an edge, or in a pool. */
export function useNewHere() {
  const { catalog, store } = useOpenLoop();
  const { screenToFlowPosition } = useReactFlow();
  return useMemo(
    () => ({
      aim: ({ clientX: x, clientY: y }: { clientX: number; clientY: number }) => {
        const { kind } = useDropTarget.getState();
        if (kind === null) return;
        const { document } = store.getState();
        const edge = edgeUnder(x, y, (key) => {
          const found = document.edges[edgeIndex(document, key)];
          return found !== undefined && spliceOf(catalog, document, found, kind) !== null;
        });
        const point = toLoop(screenToFlowPosition({ x, y }));
        const name = poolAt(catalog, document, boxesOf(catalog, document), kind, point);
        aimAt({ edge, pool: name === null ? null : { name, isLeft: false } });
      },
      take: () => {
        const { edge, pool } = useDropTarget.getState();
        clearDropTarget();
        return { edge, pool: pool?.name };
      },
    }),
    [catalog, store, screenToFlowPosition],
  );
}
