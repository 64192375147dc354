/** What a drag of boxes means besides their new places: lines to stand in, an edge to be inserted in, a pool. */

import { type Node, type NodeChange, useReactFlow } from "@xyflow/react";
import { useMemo } from "react";
import type { Catalog } from "@/api/types";
import { isUnconnected, spliceOf } from "@/document/canConnect";
import { edgeIndex } from "@/document/edges";
import { poolOf } from "@/document/pools";
import type { LoopDocument, Point } from "@/document/types";
import { placingOf } from "@/graph/frames";
import { boxesOf, middleOf } from "@/graph/geometry";
import { guide } from "@/graph/guides";
import type { Box } from "@/graph/shapes";
import { aimAt, clearDropTarget, toCanvas, useDropTarget } from "@/state/canvas";
import { insertOnEdge } from "@/state/commands/nodes";
import { placeInPool } from "@/state/commands/pools";
import { useOpenLoop } from "@/state/document/context";
import { placedLabel } from "@/state/usePlacing";

const REACH = 6;

export function useDragging() {
  const { catalog, store } = useOpenLoop();
  const { getZoom, flowToScreenPosition } = useReactFlow();

  return useMemo(() => {
    const aim = (after: readonly Box[], moved: readonly Box[]) => {
      const { document } = store.getState();
      const before = boxesOf(catalog, document);
      const ids = moved.map(({ id }) => id);
      const placing = placingOf(catalog, document, before, after, ids);
      const [only, ...more] = moved;
      let edge: string | null = null;
      if (only && more.length === 0 && isUnconnected(document, only.id)) {
        const [x, y] = middleOf(only);
        const point = flowToScreenPosition(toCanvas({ x, y }));
        edge = edgeUnder(catalog, document, point, document.nodes[only.id]?.kind);
      }
      const left = placing?.nodes[0] ? poolOf(catalog, document, placing.nodes[0]) : null;
      const name = placing?.pool ?? left;
      return { edge, pool: placing && name ? { name, isLeft: placing.pool === null } : null };
    };

    const snap = (changes: NodeChange[], nodes: readonly Node[]): NodeChange[] => {
      const wanted = new Map<string, { x: number; y: number }>();
      for (const change of changes) {
        if (change.type === "position" && change.dragging && change.position)
          wanted.set(change.id, change.position);
      }
      if (wanted.size === 0) return changes;
      const boxes = nodes.map((node) => boxOf(node, wanted.get(node.id)));
      const moved = boxes.filter(({ id }) => wanted.has(id));
      const others = boxes.filter(({ id }) => !wanted.has(id));
      const { by, guides } = guide(moved, others, REACH / getZoom());
      const shifted = moved.map((box) => ({ ...box, x: box.x + by[0], y: box.y + by[1] }));
      aimAt({ ...aim([...others, ...shifted], shifted), moved: [...wanted.keys()], guides });
      return changes.map((change) => {
        if (change.type !== "position" || !change.position || !wanted.has(change.id)) return change;
        const { x, y } = change.position;
        return { ...change, position: { x: x + by[0], y: y + by[1] } };
      });
    };

    /** The end of a drag. False where it was a move and nothing else. */
    const drop = (positions: Record<string, Point>, moved: readonly string[]): boolean => {
      const { edge: key, pool } = useDropTarget.getState();
      clearDropTarget();
      const { document } = store.getState();
      const [node] = moved;
      if (node === undefined) return false;
      const edge = key === null ? undefined : document.edges[edgeIndex(document, key)];
      const ports = edge && spliceOf(catalog, document, edge, document.nodes[node]?.kind);
      if (key !== null && ports) {
        store.dispatch(insertOnEdge, { key, node, ports, positions }, { label: `Insert ${node}` });
        return true;
      }
      if (!pool) return false;
      const name = pool.isLeft ? null : pool.name;
      const label = placedLabel(moved, pool.name, pool.isLeft);
      store.dispatch(placeInPool, { catalog, nodes: moved, pool: name, positions }, { label });
      return true;
    };

    return { snap, drop };
  }, [catalog, store, getZoom, flowToScreenPosition]);
}

/** The first edge at a point of the window that a node of this kind can be inserted in; boxes above it do not count. */
export function edgeUnder(
  catalog: Catalog,
  loop: LoopDocument,
  { x, y }: { x: number; y: number },
  kind: string | undefined,
): string | null {
  for (const element of document.elementsFromPoint?.(x, y) ?? []) {
    const key = element.closest(".react-flow__edge")?.getAttribute("data-id") ?? "";
    const edge = loop.edges[edgeIndex(loop, key)];
    if (edge && spliceOf(catalog, loop, edge, kind)) return key;
  }
  return null;
}

export function boxOf({ id, position, width, height }: Node, at = position): Box {
  return { id, ...at, width: width ?? 0, height: height ?? 0 };
}
