import { useEffect, useRef, useState } from "react";
import { areaAround, boxesOf } from "@/graph/geometry";
import { placeNodes } from "@/graph/layout";
import { useDropTarget } from "@/state/canvas";
import { useOpenLoop } from "@/state/document/context";
import { usePalette, usePreferences } from "@/state/preferences";
import { Palette } from "./Palette";
import { PALETTE_WIDTH, RAIL_WIDTH } from "./widths";

const PAUSE = 200;

/**
 * The list of nodes as a rail of signs beside the graph. It opens over the graph while the pointer or the focus is in
 * it, or it was asked for; it stays open where it is pinned.
 */
export function PaletteRail() {
  const { isOpen, isCalled, peek, close } = usePalette();
  const isPinned = usePalettePin();
  const isDragged = useDropTarget((state) => state.kind !== null || state.block !== null);
  const frame = useRef<HTMLDivElement>(null);
  const timer = useRef(0);
  const isWide = isPinned || (isOpen && !isDragged);
  const later = (then: () => void) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(then, PAUSE);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (isDragged) close();
  }, [isDragged, close]);

  const leaving = {
    onPointerEnter: (event: React.PointerEvent) => {
      if (event.pointerType === "mouse") later(peek);
    },
    onPointerLeave: () => later(() => isCalled || close()),
    onFocus: (event: React.FocusEvent) => event.target.matches(":focus-visible") && peek(),
    onBlur: (event: React.FocusEvent) => {
      if (!frame.current?.contains(event.relatedTarget)) close();
    },
    onKeyDown: (event: React.KeyboardEvent) => {
      if (event.key !== "Escape" || isPinned) return;
      close();
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    },
  };

  return (
    <div
      ref={frame}
      className="relative h-full shrink-0"
      style={{ width: isPinned ? PALETTE_WIDTH : RAIL_WIDTH }}
      {...leaving}
    >
      <Palette isWide={isWide} isPinned={isPinned} isAsked={isCalled} />
    </div>
  );
}

const WIDE = 1440;
const AROUND = 64;

/** Whether the list stays open: as was said, else where a wide window shows all of the graph beside it in full size. */
function usePalettePin(): boolean {
  const { catalog, store } = useOpenLoop();
  const pinned = usePreferences((state) => state.isPalettePinned);
  const [hasRoom] = useState(() => {
    if (window.innerWidth < WIDE) return false;
    const { document } = store.getState();
    const layout = placeNodes(catalog, document);
    const area = areaAround(boxesOf(catalog, { ...document, layout }));
    const { inspectorWidth } = usePreferences.getState();
    const room = window.innerWidth - PALETTE_WIDTH - inspectorWidth - AROUND;
    return area === null || area.right - area.left <= room;
  });
  return pinned ?? hasRoom;
}
