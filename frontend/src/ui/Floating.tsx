import { type HTMLAttributes, type ReactNode, useLayoutEffect, useRef } from "react";
import { createPortal } from "react-dom";

export type Side = "top" | "right" | "bottom" | "left";

interface FloatingProps extends HTMLAttributes<HTMLDivElement> {
  anchor: Element;
  side: Side;
  /** Where it begins along that side: in its middle, unless said. */
  align?: "start";
  children: ReactNode;
}

/** From what it stands at, and from the edge of the page. */
const GAP = 6;
const MARGIN = 8;

/** A box beside something, above everything else. */
export function Floating({ anchor, side, align, children, ...rest }: FloatingProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!box.current) return;
    const { x, y } = placed(anchor.getBoundingClientRect(), box.current.getBoundingClientRect(), {
      side,
      page: { width: window.innerWidth, height: window.innerHeight },
    });
    const start = anchor.getBoundingClientRect().left;
    box.current.style.left = `${align ? Math.max(MARGIN, Math.min(start, x + start)) : x}px`;
    box.current.style.top = `${y}px`;
  });
  return createPortal(
    <div ref={box} {...rest}>
      {children}
    </div>,
    document.body,
  );
}

interface Size {
  width: number;
  height: number;
}

interface Around {
  side: Side;
  page: Size;
}

/** At the middle of the side; at the opposite one where there is no room; never off the page. */
export function placed(anchor: DOMRect, box: Size, { side, page }: Around) {
  const middleX = anchor.left + (anchor.width - box.width) / 2;
  const middleY = anchor.top + (anchor.height - box.height) / 2;
  const above = anchor.top - GAP - box.height;
  const left = anchor.left - GAP - box.width;
  const isBelow = anchor.bottom + GAP + box.height <= page.height - MARGIN;
  const isRight = anchor.right + GAP + box.width <= page.width - MARGIN;
  const spot = {
    top: { x: middleX, y: above < MARGIN && isBelow ? anchor.bottom + GAP : above },
    bottom: { x: middleX, y: isBelow || above < MARGIN ? anchor.bottom + GAP : above },
    left: { x: left < MARGIN && isRight ? anchor.right + GAP : left, y: middleY },
    right: { x: isRight || left < MARGIN ? anchor.right + GAP : left, y: middleY },
  }[side];
  const inside = (at: number, room: number) => Math.max(MARGIN, Math.min(at, room - MARGIN));
  return {
    x: inside(spot.x, page.width - box.width),
    y: inside(spot.y, page.height - box.height),
  };
}
