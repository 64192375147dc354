/** Sizes of a drawn node. The layout and the edges count on them, so they stand in one place. */
import type { Catalog, KindInfo } from "@/api/types";

export const NODE_WIDTH = 224;
export const HEADER_HEIGHT = 52;
export const PORT_HEIGHT = 22;
export const BODY_PADDING = 8;
const LIVE_LINE = 16;
const LIVE_REST = 30;
const MOST_RATES = 2;
export const GRID = 16;

export function nodeHeight(kind: KindInfo | undefined, isLive: boolean): number {
  const rows = Math.max(kind?.inputs.length ?? 0, kind?.outputs.length ?? 0, 1);
  return (
    HEADER_HEIGHT +
    rows * PORT_HEIGHT +
    2 * BODY_PADDING +
    (isLive ? liveHeight(rateLines(kind)) : 0)
  );
}

/** How many of a node's stages have a line with their rate in a run. */
export function rateLines(kind: KindInfo | undefined): number {
  return Math.min(MOST_RATES, Math.max(1, kind?.stages.length ?? 1));
}

export function liveHeight(lines: number): number {
  return lines * LIVE_LINE + LIVE_REST;
}

/** Middle of a port's row, from the top of the node. */
export function portTop(row: number): number {
  return HEADER_HEIGHT + BODY_PADDING + row * PORT_HEIGHT + PORT_HEIGHT / 2;
}

export function kindOf(catalog: Catalog, kind: string | undefined): KindInfo | undefined {
  return catalog.kinds[kind ?? ""];
}
