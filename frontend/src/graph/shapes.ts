/** Points, boxes and lines of the canvas, and whether they meet. Pure. */

export type Point = [number, number];

export interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** What is left free around an area. */
export interface Around {
  side: number;
  top: number;
  bottom: number;
}

export interface Box {
  id: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export function areaOf({ x, y, width, height }: Omit<Box, "id">): Area {
  return { left: x, top: y, right: x + width, bottom: y + height };
}

export function grown({ left, top, right, bottom }: Area, by: Around): Area {
  return {
    left: left - by.side,
    top: top - by.top,
    right: right + by.side,
    bottom: bottom + by.bottom,
  };
}

export function overlap(a: Area, b: Area, apart = 0): boolean {
  return (
    a.left < b.right + apart &&
    b.left < a.right + apart &&
    a.top < b.bottom + apart &&
    b.top < a.bottom + apart
  );
}

export function lineArea([ax, ay]: Point, [bx, by]: Point): Area {
  return {
    left: Math.min(ax, bx),
    right: Math.max(ax, bx),
    top: Math.min(ay, by),
    bottom: Math.max(ay, by),
  };
}

export function crosses(points: readonly Point[], areas: readonly Area[], apart = 0): boolean {
  for (let index = 1; index < points.length; index += 1) {
    const piece = lineArea(points[index - 1] as Point, points[index] as Point);
    for (const area of areas) if (overlap(piece, area, apart)) return true;
  }
  return false;
}

export function union(areas: readonly Area[]): Area {
  const all = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { left, top, right, bottom } of areas) {
    if (left < all.left) all.left = left;
    if (top < all.top) all.top = top;
    if (right > all.right) all.right = right;
    if (bottom > all.bottom) all.bottom = bottom;
  }
  return all;
}
