import type { Node } from "@xyflow/react";
import { useMemo, useRef } from "react";
import { type Dot, type Squeeze, squeezeBoxes } from "@/graph/compact";
import type { Box } from "@/graph/shapes";
import type { Socket } from "@/graph/sockets";
import { boxOf } from "./guides/useDragging";

export interface CardData {
  sockets: readonly Socket[];
  dots: readonly Dot[];
}

interface Ends {
  sockets: ReadonlyMap<string, readonly Socket[]>;
  dots: ReadonlyMap<string, readonly Dot[]>;
}

/** The nodes as they stand on the canvas, with the ends of edges; the same objects as long as nothing changes. */
export function useSockets(
  nodes: readonly Node[],
  { sockets, dots }: Ends,
  squeeze: Squeeze | null,
): Node[] {
  const sizes = useMemo(() => {
    const boxes = squeeze
      ? squeezeBoxes(
          nodes.map((node) => boxOf(node)),
          squeeze,
        )
      : [];
    return new Map(boxes.map((box) => [box.id, box]));
  }, [nodes, squeeze]);
  const cache = useRef(new Map<string, { from: Node; mark: string; node: Node }>());
  return useMemo(
    () =>
      nodes.map((from) => {
        const own = { sockets: sockets.get(from.id) ?? [], dots: dots.get(from.id) ?? [] };
        const ends = `${own.sockets.map(socketMark)} ${own.dots.map(dotMark)}`;
        const box = sizes.get(from.id);
        const mark = box ? `${ends} ${Object.values(box)}` : ends;
        const old = cache.current.get(from.id);
        if (old?.from === from && old.mark === mark) return old.node;
        const data = old?.mark === mark ? old.node.data : { ...own };
        const node = box ? squeezed(from, box, data) : { ...from, data };
        cache.current.set(from.id, { from, mark, node });
        return node;
      }),
    [nodes, sockets, dots, sizes],
  );
}

function squeezed(from: Node, { x, y, width, height }: Box, data: Record<string, unknown>): Node {
  const size = { width, height };
  return { ...from, data, position: { x, y }, ...size, measured: size };
}

function socketMark({ key, x, side, isTarget }: Socket): string {
  return `${key} ${x} ${side} ${isTarget}`;
}

function dotMark({ port, isTarget, top }: Dot): string {
  return `${port} ${isTarget} ${top}`;
}
