import { type Node, ViewportPortal } from "@xyflow/react";
import { useMemo } from "react";
import { boxesOf } from "@/document/boxes";
import { useDocument, useNodeColors, useOpenLoop } from "@/document/context";
import { framesWhile } from "@/document/frames";
import { useDropTarget } from "@/session/dropTarget";
import { PoolFrame } from "./PoolFrame";

/** Each pool of the hardware as a frame round the nodes that name it. */
export function Frames({ nodes }: { nodes: readonly Node[] }) {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const aimed = useDropTarget((state) => state.pool);
  const colors = useNodeColors();
  const moved = useDropTarget((state) => state.moved);
  const frames = useMemo(() => {
    const after = nodes.map(({ id, position, width, height }) => {
      return { id, ...position, width: width ?? 0, height: height ?? 0 };
    });
    const began = new Map(boxesOf(catalog, document, moved).map((box) => [box.id, box]));
    const before = after.map((box) => began.get(box.id) ?? box);
    return framesWhile(catalog, document, before, after, new Set(moved));
  }, [catalog, document, nodes, moved]);
  if (frames.length === 0) return null;
  return (
    <ViewportPortal>
      {frames.map((frame) => (
        <PoolFrame
          key={frame.pool.name}
          frame={frame}
          color={colors[frame.members[0] ?? ""] ?? "var(--muted)"}
          aimed={aimed?.name === frame.pool.name ? (aimed.isLeft ? "left" : "entered") : undefined}
        />
      ))}
    </ViewportPortal>
  );
}
