/** Which part of the steps a chart shows. Pure. */
export interface Zoom {
  min: number;
  max: number;
}

/** The range that somebody chose; null where all steps are shown. */
export function zoomOf(
  steps: ArrayLike<number>,
  shown: { min?: number | null | undefined; max?: number | null | undefined } | undefined,
): Zoom | null {
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const { min, max } = shown ?? {};
  if (first === undefined || last === undefined) return null;
  if (typeof min !== "number" || typeof max !== "number") return null;
  return min > first || max < last ? { min, max } : null;
}
