import { type Node, ViewportPortal } from "@xyflow/react";
import { useMemo } from "react";
import { frameAround, squeezeBoxes } from "@/graph/compact";
import { framesWhile } from "@/graph/frames";
import { type Box, boxesOf } from "@/graph/geometry";
import { useDetail, useDropTarget } from "@/state/canvas";
import { useDocument, useNodeColors, useOpenLoop } from "@/state/document/context";
import { PoolFrame } from "./PoolFrame";

interface FramesProps {
  /** As they stand in the loop. */
  nodes: readonly Node[];
}

/** Each pool of the hardware as a frame round the nodes that name it. */
export function Frames({ nodes }: FramesProps) {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const aimed = useDropTarget((state) => state.pool);
  const colors = useNodeColors();
  const squeeze = useDetail((state) => state.squeeze);
  const moved = useDropTarget((state) => state.moved);
  const frames = useMemo(() => {
    const after = nodes.map(({ id, position, width, height }) => {
      return { id, ...position, width: width ?? 0, height: height ?? 0 };
    });
    const began = new Map(boxesOf(catalog, document, moved).map((box) => [box.id, box]));
    const before = after.map((box) => began.get(box.id) ?? box);
    const going = new Set(moved);
    if (squeeze === null) return framesWhile(catalog, document, before, after, going);
    const drawn = [before, after].map((boxes) => squeezeBoxes(boxes, squeeze)) as [Box[], Box[]];
    return framesWhile(catalog, document, ...drawn, going, frameAround(squeeze));
  }, [catalog, document, nodes, moved, squeeze]);
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
