import { useViewport } from "@xyflow/react";
import { GRID } from "@/document/geometry";

const SMALLEST_GAP = 14;

/** Dots behind the graph. They stay apart and equally fine at every zoom. */
export function CanvasGrid() {
  const { x, y, zoom } = useViewport();
  let gap = GRID * zoom;
  while (gap < SMALLEST_GAP) gap *= 2;
  return (
    <div
      aria-hidden="true"
      className="pointer-events-none absolute inset-0"
      style={{
        backgroundImage: "radial-gradient(circle, var(--canvas-dot) 1px, transparent 1.2px)",
        backgroundSize: `${gap}px ${gap}px`,
        backgroundPosition: `${x - gap / 2}px ${y - gap / 2}px`,
      }}
    />
  );
}
