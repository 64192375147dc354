import { classes } from "./classes";

export interface ResizerProps {
  label: string;
  grows: "up" | "left";
  size: number;
  min: number;
  max: number;
  onResize: (size: number) => void;
}

export function Resizer({ label, grows, size, min, max, onResize }: ResizerProps) {
  const bound = (value: number) => Math.round(Math.min(max, Math.max(min, value)));
  const isRow = grows === "up";

  const start = (event: React.PointerEvent<HTMLDivElement>) => {
    const from = isRow ? event.clientY : event.clientX;
    const target = event.currentTarget;
    target.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent) => {
      onResize(bound(size + from - (isRow ? moved.clientY : moved.clientX)));
    };
    const dragging = new AbortController();
    const { signal } = dragging;
    target.addEventListener("pointermove", move, { signal });
    target.addEventListener("pointerup", () => dragging.abort(), { signal });
    target.addEventListener("pointercancel", () => dragging.abort(), { signal });
  };

  const nudge = (event: React.KeyboardEvent) => {
    const bigger = isRow ? "ArrowUp" : "ArrowLeft";
    const smaller = isRow ? "ArrowDown" : "ArrowRight";
    if (event.key === bigger) onResize(bound(size + 24));
    else if (event.key === smaller) onResize(bound(size - 24));
    else return;
    event.preventDefault();
  };

  return (
    <div
      role="separator"
      aria-label={label}
      aria-orientation={isRow ? "horizontal" : "vertical"}
      aria-valuenow={size}
      aria-valuemin={min}
      aria-valuemax={max}
      tabIndex={0}
      onPointerDown={start}
      onKeyDown={nudge}
      className={classes(
        "absolute z-10 touch-none transition-colors hover:bg-focus/40 focus-visible:bg-focus/40",
        isRow
          ? "-top-[3px] right-0 left-0 h-1.5 cursor-row-resize"
          : "top-0 bottom-0 -left-[3px] w-1.5 cursor-col-resize",
      )}
    />
  );
}
