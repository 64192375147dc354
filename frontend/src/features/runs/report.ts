/** What a run's report says of its times. Pure. */
import type { RunReport } from "@/api/types";

export interface StageTimes {
  stage: string;
  /** The row of the whole step. */
  isStep: boolean;
  predicted: number | null;
  measured: number | null;
}

/** The step first, then stages by what they took. */
export function readReport({ predicted, measured }: RunReport): StageTimes[] {
  const [before, after] = [predicted.stages, measured.stages];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const stages = names.map(
    (stage): StageTimes => ({
      stage,
      isStep: false,
      predicted: before[stage] ?? null,
      measured: after[stage] ?? null,
    }),
  );
  const size = (row: StageTimes) => row.measured ?? row.predicted ?? 0;
  const step: StageTimes = {
    stage: "A step",
    isStep: true,
    predicted: predicted.step_seconds ?? null,
    measured: measured.step_seconds ?? null,
  };
  return [step, ...stages.toSorted((a, b) => size(b) - size(a))];
}
