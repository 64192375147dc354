/** The first edge at a point of the window that may be chosen; boxes above it do not count. */
export function edgeUnder(x: number, y: number, isFit: (key: string) => boolean): string | null {
  for (const found of document.elementsFromPoint?.(x, y) ?? []) {
    const key = found.closest(".react-flow__edge")?.getAttribute("data-id");
    if (key && isFit(key)) return key;
  }
  return null;
}
