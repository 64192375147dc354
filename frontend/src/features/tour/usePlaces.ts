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
  const { innerWidth: right, innerHeight: bottom } = window;
  const spots: [number, number][] = [
    [box.right + GAP, box.top],
    [box.left - own.width - GAP, box.top],
    [box.left, box.bottom + GAP],
    [box.left, box.top - own.height - GAP],
  ];
  const fits = ([x, y]: [number, number]) =>
    x >= MARGIN &&
    y >= MARGIN &&
    x + own.width <= right - MARGIN &&
    y + Math.min(own.height, 120) <= bottom - MARGIN;
  const [x, y] = spots.find(fits) ?? [
    box.left + (box.width - own.width) / 2,
    box.top + (box.height - own.height) / 3,
  ];
  return {
    ring,
    panel: {
      left: clamp(x, right - own.width - MARGIN),
      top: clamp(y, bottom - own.height - MARGIN),
    },
  };
}

function clamp(value: number, most: number): number {
  return Math.max(MARGIN, Math.min(value, most));
}
