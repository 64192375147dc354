import { type CSSProperties, type RefObject, useLayoutEffect, useState } from "react";

const GAP = 12;
const MARGIN = 12;

interface Places {
  ring: CSSProperties | null;
  panel: CSSProperties;
}

const MIDDLE: CSSProperties = { top: "40%", left: "50%", transform: "translate(-50%, -50%)" };

/** Where the ring round a target is, and the panel beside it, as long as the window stays as it is. */
export function usePlaces(
  target: string,
  prepare: (() => void) | undefined,
  panel: RefObject<HTMLElement | null>,
): Places {
  const [places, setPlaces] = useState<Places>({ ring: null, panel: MIDDLE });
  useLayoutEffect(() => {
    prepare?.();
    const measure = () => {
      const box = document.querySelector(target)?.getBoundingClientRect();
      const own = panel.current?.getBoundingClientRect();
      setPlaces(box && own ? beside(box, own) : { ring: null, panel: MIDDLE });
    };
    // What was opened just now is laid out in the next frame.
    const frame = requestAnimationFrame(measure);
    window.addEventListener("resize", measure);
    return () => {
      cancelAnimationFrame(frame);
      window.removeEventListener("resize", measure);
    };
  }, [target, prepare, panel]);
  return places;
}

/** Beside the target where there is room: right, left, below, above; else within it. */
export function beside(box: DOMRect, own: { width: number; height: number }): Places {
  const ring = { top: box.top, left: box.left, width: box.width, height: box.height };
  const { innerWidth, innerHeight } = window;
  const most = { x: innerWidth - own.width - MARGIN, y: innerHeight - own.height - MARGIN };
  const [x, y] = [clamp(box.left, most.x), clamp(box.top, most.y)];
  const spots: [boolean, number, number][] = [
    [box.right + GAP <= most.x, box.right + GAP, y],
    [box.left - own.width - GAP >= MARGIN, box.left - own.width - GAP, y],
    [box.bottom + GAP <= most.y, x, box.bottom + GAP],
    [box.top - own.height - GAP >= MARGIN, x, box.top - own.height - GAP],
  ];
  const inside = [
    true,
    clamp(box.left + (box.width - own.width) / 2, most.x),
    clamp(box.top + (box.height - own.height) / 3, most.y),
  ] as const;
  const [, left, top] = spots.find(([fits]) => fits) ?? inside;
  return { ring, panel: { left, top } };
}

function clamp(value: number, most: number): number {
  return Math.max(MARGIN, Math.min(value, most));
}
