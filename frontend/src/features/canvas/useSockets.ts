import type { Node } from "@xyflow/react";
import { useMemo, useRef } from "react";
import type { Squeeze } from "@/session/detail";
import type { Dot } from "./compact";
import type { Socket } from "./sockets";

/** What a card is told besides what the loop says of its node. */
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
  const cache = useRef(new Map<string, { from: Node; mark: string; node: Node }>());
  return useMemo(
    () =>
      nodes.map((from) => {
        const own = { sockets: sockets.get(from.id) ?? [], dots: dots.get(from.id) ?? [] };
        const ends = `${own.sockets.map(socketMark)} ${own.dots.map(dotMark)}`;
        const mark = squeeze ? `${ends} ${Object.values(squeeze)}` : ends;
        const old = cache.current.get(from.id);
        if (old?.from === from && old.mark === mark) return old.node;
        const data = old?.mark === mark ? old.node.data : { ...own };
        const node = squeeze ? squeezed(from, squeeze, data) : { ...from, data };
        cache.current.set(from.id, { from, mark, node });
        return node;
      }),
    [nodes, sockets, dots, squeeze],
  );
}

function squeezed(from: Node, by: Squeeze, data: Record<string, unknown>): Node {
  const size = { width: (from.width ?? 0) * by.width, height: (from.height ?? 0) * by.height };
  const position = { x: from.position.x * by.x, y: from.position.y * by.y };
  return { ...from, data, position, ...size, measured: size };
}

function socketMark({ key, x, side, isTarget }: Socket): string {
  return `${key} ${x} ${side} ${isTarget}`;
}

function dotMark({ port, isTarget, top }: Dot): string {
  return `${port} ${isTarget} ${top}`;
}
