/** Where the boxes of a loop stand and how large they are. Pure. */
import type { Catalog } from "@/api/types";
import { nodeSize } from "./geometry";
import type { LoopDocument, Point } from "./types";

export interface Box {
  id: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The boxes of these nodes; those without a place have none. */
export function boxesOf(
  catalog: Catalog,
  document: LoopDocument,
  ids: readonly string[] = Object.keys(document.nodes),
): Box[] {
  return ids.flatMap((id) => {
    const place: Point | undefined = id in document.nodes ? document.layout[id] : undefined;
    if (!place) return [];
    const [x, y] = place;
    return [{ id, x, y, ...nodeSize(catalog, document, id) }];
  });
}

export interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export function areaOf(boxes: readonly Box[]): Area | null {
  if (boxes.length === 0) return null;
  return {
    left: Math.min(...boxes.map(({ x }) => x)),
    top: Math.min(...boxes.map(({ y }) => y)),
    right: Math.max(...boxes.map(({ x, width }) => x + width)),
    bottom: Math.max(...boxes.map(({ y, height }) => y + height)),
  };
}

export function middleOf({ x, y, width, height }: Box): Point {
  return [x + width / 2, y + height / 2];
}

export function isInside({ left, top, right, bottom }: Area, [x, y]: Point): boolean {
  return x >= left && x <= right && y >= top && y <= bottom;
}
