import type { Node } from "@xyflow/react";
import { useMemo, useRef } from "react";
import type { Socket } from "./sockets";

/** The nodes with the ends of edges at their bottoms; the same objects as long as nothing changes. */
export function useSockets(
  nodes: readonly Node[],
  sockets: ReadonlyMap<string, readonly Socket[]>,
): Node[] {
  const cache = useRef(new Map<string, { from: Node; mark: string; node: Node }>());
  return useMemo(
    () =>
      nodes.map((from) => {
        const own = sockets.get(from.id) ?? [];
        const mark = own.map((one) => `${one.key} ${one.x} ${one.side} ${one.isTarget}`).join(",");
        const old = cache.current.get(from.id);
        if (old?.from === from && old.mark === mark) return old.node;
        const isSame = old?.mark === mark;
        const node = { ...from, data: isSame ? old.node.data : { sockets: own } };
        cache.current.set(from.id, { from, mark, node });
        return node;
      }),
    [nodes, sockets],
  );
}
