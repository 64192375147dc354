/** What a run's report says of its times, rates and memory: as predicted, and as measured. Pure. */
import type { RunReport } from "@/api/types";

export interface Compared {
  name: string;
  /** The row of the whole step. */
  isStep: boolean;
  predicted: number | null;
  measured: number | null;
}

/** How far the prediction was off, as a share of what was measured; null where either is not known. */
export function errorOf({ predicted, measured }: Compared): number | null {
  if (predicted === null || measured === null || measured === 0) return null;
  return (predicted - measured) / measured;
}

type Numbers = Readonly<Record<string, number | null | undefined>>;

/** By what was measured, the largest first. */
function compared(before: Numbers, after: Numbers): Compared[] {
  const size = (row: Compared) => row.measured ?? row.predicted ?? 0;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((name) => ({
      name,
      isStep: false,
      predicted: before[name] ?? null,
      measured: after[name] ?? null,
    }))
    .toSorted((a, b) => size(b) - size(a));
}

/** The step first, then stages by what they took. */
export function timesOf({ predicted, measured }: RunReport): Compared[] {
  const step: Compared = {
    name: "A step",
    isStep: true,
    predicted: predicted.step_seconds ?? null,
    measured: measured.step_seconds ?? null,
  };
  return [step, ...compared(predicted.stages, measured.stages)];
}

export function ratesOf({ predicted, measured }: RunReport): Compared[] {
  return compared(predicted.tokens_per_second, measured.tokens_per_second);
}

export function memoryOf({ predicted, measured }: RunReport): Compared[] {
  return compared(predicted.memory_bytes, measured.memory_bytes);
}
