import { useStore, ViewportPortal } from "@xyflow/react";
import { useRef } from "react";
import { GRID } from "@/document/geometry";
import { useMoving } from "./useMoves";

const SMALLEST_GAP = 14;
/** How far it goes from where the graph begins: a whole number of all gaps. */
const REACH = GRID * 4096;

/**
 * The ground of the graph, with dots that stay apart and equally fine at every zoom. It moves with the graph, so that
 * both are one picture; as it hides all behind it, so can the browser keep boxes and ground in one layer.
 */
export function CanvasGround() {
  const isMoving = useMoving((state) => state.isMoving);
  const drawnAt = useRef<number | null>(null);
  const zoom = useStore(({ transform }) => (isMoving && drawnAt.current) || transform[2]);
  drawnAt.current = zoom;
  let gap = GRID;
  while (gap * zoom < SMALLEST_GAP) gap *= 2;
  return (
    <ViewportPortal>
      <div
        aria-hidden="true"
        className="canvas-ground"
        style={{
          inset: -REACH,
          backgroundImage: `radial-gradient(circle, var(--canvas-dot) ${1 / zoom}px, transparent ${1.2 / zoom}px)`,
          backgroundSize: `${gap}px ${gap}px`,
          backgroundPosition: `${-gap / 2}px ${-gap / 2}px`,
        }}
      />
    </ViewportPortal>
  );
}
