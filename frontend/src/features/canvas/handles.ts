/** Names of the ends of edges: of a port at a side its own, of one edge at a bottom the port's and the edge's. */
import { type Handle, useConnection } from "@xyflow/react";
import { create } from "zustand";
import type { PortRef } from "@/document/types";

/** The edge whose end is being moved: its old place counts as free for the ports that say what fits. */
export const useMovingEdge = create<{ key: string | null }>()(() => ({ key: null }));

const BETWEEN = "#";

export function socketHandle(port: string, key: string): string {
  return `${port}${BETWEEN}${key}`;
}

export function portOfHandle(handle: string | null | undefined): string {
  return handle?.split(BETWEEN)[0] ?? "";
}

interface Start extends PortRef {
  isOutput: boolean;
}

export function startAt({ nodeId, id, type }: Pick<Handle, "nodeId" | "id" | "type">): Start {
  return { node: nodeId, port: portOfHandle(id), isOutput: type === "source" };
}

/** The port that an edge is being drawn from, the same as long as it is; null while none is drawn. */
export function useDrawnFrom(): Start | null {
  // React Flow compares what is selected key by key.
  return useConnection(({ inProgress, fromHandle }) =>
    inProgress && fromHandle ? startAt(fromHandle) : null,
  );
}

/** From output to input, whichever of the two ends the edge is drawn from. */
export function inOrder<P extends PortRef | null>(
  start: Start,
  end: P,
): [PortRef | P, PortRef | P] {
  return start.isOutput ? [start, end] : [end, start];
}
