import { useState } from "react";
import { areaOf, boxesOf } from "@/document/boxes";
import { useOpenLoop } from "@/document/context";
import { placeNodes } from "@/document/layout";
import { usePreferences } from "@/session/preferences";
import { PALETTE_WIDTH } from "./widths";

/** From this width of the window on the list can stay open by itself. */
const WIDE = 1440;
/** Around a graph that is fitted. */
const AROUND = 64;

/** Whether the list stays open: as was said, else where a wide window shows all of the graph beside it in full size. */
export function usePalettePin(): boolean {
  const { catalog, store } = useOpenLoop();
  const pinned = usePreferences((state) => state.isPalettePinned);
  // As the loop was opened: nothing moves while it is edited.
  const [hasRoom] = useState(() => {
    if (window.innerWidth < WIDE) return false;
    const { document } = store.getState();
    const layout = placeNodes(catalog, document);
    const area = areaOf(boxesOf(catalog, { ...document, layout }));
    const { inspectorWidth } = usePreferences.getState();
    const room = window.innerWidth - PALETTE_WIDTH - inspectorWidth - AROUND;
    return area === null || area.right - area.left <= room;
  });
  return pinned ?? hasRoom;
}
