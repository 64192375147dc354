import { useEffect, useRef, useState } from "react";
import type { StageSpan } from "@/live/state";
import { useNodeColors } from "@/state/document/context";
import { useResolvedTheme } from "@/state/theme";
import { AXIS, drawTimeline, type Painting, spanAt } from "./draw";
import { type Range, zoomRange } from "./rows";

interface TimelineCanvasProps extends Omit<Painting, "colorOf" | "brush"> {
  onHover: (span: StageSpan | null) => void;
  onRange: (range: Range | null) => void;
}

/** The bars. Moves by drags and arrow keys, zooms by the wheel, + and −, a Shift drag or a double press. */
export function TimelineCanvas({ onHover, onRange, ...painting }: TimelineCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useResolvedTheme();
  const colors = useNodeColors();
  const [brush, setBrush] = useState<Range | null>(null);
  const { rows, rowHeight, range, origin, now, hovered } = painting;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new theme needs new colours; ranges by their ends
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const colorOf = (node: string) => colors[node] ?? "var(--muted)";
    const draw = () => drawTimeline(element, { ...painting, brush, colorOf });
    draw();
    const resize = new ResizeObserver(draw);
    resize.observe(element);
    return () => resize.disconnect();
  }, [rows, rowHeight, range.start, range.end, origin, now, hovered, brush, theme, colors]);

  useWheelZoom(canvas, range, onRange);

  const timeAt = ({ currentTarget, clientX }: React.PointerEvent<HTMLCanvasElement>) =>
    timeOf(range, currentTarget, clientX);
  const move = (event: React.PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    if (brush) setBrush({ start: brush.start, end: timeAt(event) });
    else if (event.buttons === 1) {
      const by = (-event.movementX / box.width) * (range.end - range.start);
      onRange({ start: range.start + by, end: range.end + by });
    } else {
      onHover(spanAt(painting, box.width, event.clientX - box.left, event.clientY - box.top));
    }
  };
  const finish = () => {
    if (!brush) return;
    const [start, end] = [Math.min(brush.start, brush.end), Math.max(brush.start, brush.end)];
    setBrush(null);
    if (end - start > 20) onRange({ start, end });
  };
  return (
    <canvas
      ref={canvas}
      role="img"
      tabIndex={0}
      aria-label={`Timeline of ${rows.length} rows: arrow keys move, plus and minus zoom`}
      className="min-w-0 flex-1 cursor-grab touch-none active:cursor-grabbing"
      style={{ height: AXIS + rows.length * rowHeight }}
      onPointerMove={move}
      onPointerLeave={() => onHover(null)}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        if (event.shiftKey) setBrush({ start: timeAt(event), end: timeAt(event) });
      }}
      onPointerUp={finish}
      onDoubleClick={() => onRange(null)}
      onKeyDown={(event) => {
        const moved = movedRange(range, event.key);
        if (moved === undefined) return;
        event.preventDefault();
        onRange(moved);
      }}
    />
  );
}

function timeOf({ start, end }: Range, canvas: HTMLCanvasElement, x: number): number {
  const { left, width } = canvas.getBoundingClientRect();
  return start + ((x - left) / width) * (end - start);
}

/** The range that a key asks for; null: the one that follows the run; undefined: none. */
function movedRange(range: Range, key: string): Range | null | undefined {
  const by = 0.2 * (range.end - range.start);
  const middle = (range.start + range.end) / 2;
  switch (key) {
    case "ArrowLeft":
      return { start: range.start - by, end: range.end - by };
    case "ArrowRight":
      return { start: range.start + by, end: range.end + by };
    case "+":
      return zoomRange(range, middle, 1 / 1.5);
    case "-":
      return zoomRange(range, middle, 1.5);
    case "0":
      return null;
    default:
      return undefined;
  }
}

/** React listens to the wheel passively, so the page would scroll. */
function useWheelZoom(
  canvas: React.RefObject<HTMLCanvasElement | null>,
  range: Range,
  setRange: (range: Range) => void,
): void {
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const zoom = (event: WheelEvent) => {
      event.preventDefault();
      const at = timeOf(range, element, event.clientX);
      setRange(zoomRange(range, at, event.deltaY > 0 ? 1.2 : 1 / 1.2));
    };
    element.addEventListener("wheel", zoom, { passive: false });
    return () => element.removeEventListener("wheel", zoom);
  }, [canvas, range, setRange]);
}
