import { type RefObject, useLayoutEffect, useState } from "react";

/** As the style sheet has them. */
export const LINE_HEIGHT = 18;
export const PADDING = 8;

/** Lines of what is shown, from the first to before the last. */
export interface Visible {
  first: number;
  last: number;
}

/** More than are seen, in steps: few scrolls paint. */
const STEP = 20;

/** The lines that are in sight, and some around them. */
export function useVisibleLines(scroller: RefObject<HTMLElement | null>, count: number): Visible {
  const [range, setRange] = useState<Visible>({ first: 0, last: 3 * STEP });
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const look = () => {
      const first = Math.floor((box.scrollTop - PADDING) / LINE_HEIGHT / STEP) * STEP - STEP;
      const rows = Math.ceil((box.clientHeight || window.innerHeight) / LINE_HEIGHT / STEP) * STEP;
      const last = first + rows + 3 * STEP;
      setRange((old) => (old.first === first && old.last === last ? old : { first, last }));
    };
    look();
    box.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(look);
    sizes.observe(box);
    return () => {
      box.removeEventListener("scroll", look);
      sizes.disconnect();
    };
  }, [scroller]);
  return { first: Math.max(0, range.first), last: Math.min(count, range.last) };
}
