/** What a run's report says of its times. Pure. */
import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";

export interface StageTimes {
  stage: string;
  /** The row of the whole step. */
  isStep: boolean;
  predicted: number | null;
  measured: number | null;
}

/** The step first, then stages by what they took. */
export function readReport(report: JsonObject): StageTimes[] {
  const predicted = isObject(report.predicted) ? report.predicted : {};
  const measured = isObject(report.measured) ? report.measured : {};
  const [before, after] = [stagesOf(predicted), stagesOf(measured)];
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
    predicted: number(predicted.step_seconds),
    measured: number(measured.step_seconds),
  };
  return [step, ...stages.toSorted((a, b) => size(b) - size(a))];
}

function stagesOf(side: JsonObject): Record<string, number> {
  const stages = isObject(side.stages) ? side.stages : {};
  return Object.fromEntries(
    Object.entries(stages).filter((entry): entry is [string, number] => number(entry[1]) !== null),
  );
}

function number(value: Json | undefined): number | null {
  return typeof value === "number" ? value : null;
}
