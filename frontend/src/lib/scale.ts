import type uPlot from "uplot";
import { resolveColor } from "./colors";
import { formatTicks } from "./format";

/**
 * Of the largest value: ends nearer to each other are one value that was computed twice. Marks
 * between them would be so near to each other that adding their distance changes nothing, and
 * drawing them would not end.
 */
const ONE_VALUE = 1e-9;
const NOTHING = 1e-30;

/** A little air above and below; a flat line lies in the middle, zero at the foot. */
export function roomy(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  const largest = Math.max(Math.abs(min), Math.abs(max));
  if (largest < NOTHING) return [0, 1];
  if (max - min <= largest * ONE_VALUE) return [min - largest * 0.2, max + largest * 0.2];
  const air = (max - min) * 0.06;
  return [min >= 0 && min < air ? 0 : min - air, max + air];
}

/** Distances of the marks below a chart: there is no half step. */
export const WHOLE_STEPS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((times) => times * 10 ** power),
).flat();

const MIN_WIDTH = 26;
const DIGIT = 7;

function axisWidth(texts: readonly string[] | null): number {
  const longest = Math.max(0, ...(texts ?? []).map((text) => text.length));
  return Math.max(MIN_WIDTH, 10 + longest * DIGIT);
}

/** Axes of a plot, their colors resolved: steps or the like below, a few short numbers at the left. */
export function plotAxes(below: Partial<uPlot.Axis>, left: Partial<uPlot.Axis> = {}): uPlot.Axis[] {
  const stroke = resolveColor("var(--muted)");
  const line = resolveColor("var(--line)");
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return [
    { stroke, font, grid: { show: false }, ticks: { stroke: line, size: 4 }, ...below },
    {
      stroke,
      font,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      size: (_, texts) => axisWidth(texts),
      values: (_, ticks) => formatTicks(ticks),
      ...left,
    },
  ];
}
