/** Arms of a comparison as curves over seeds. Pure. */
import type { Bodies } from "@/api/types";
import { identityColor, MAX_COMPARED } from "@/lib/colors";

export type ControlKind = Bodies["ControlArm"]["kind"];
export type ControlArm = Bodies["ControlArm"];
export type GroupRun = Bodies["GroupRun"];

/** Runs of one loop over seeds, as a chart draws them. */
export interface DrawnGroup {
  key: string;
  title: string;
  runs: readonly GroupRun[];
}

const TITLES: Record<ControlKind, string> = {
  full: "Whole loop",
  frozen: "Partners frozen",
  shuffled: "Scores of other rows",
  plain: "Without the partners",
  constant: "Constant judge",
  random: "Random judge",
  no_tool: "Without its tool",
  no_filter: "Without its filter",
};

export const kindTitle = (kind: ControlKind): string => TITLES[kind];

export const armColor = (place: number): string => identityColor((place % MAX_COMPARED) + 1);

/** Points of one run, by steps since the arms began to differ. The first is the reading before that. */
export interface Line {
  steps: number[];
  values: number[];
}

export function lineOf({ steps, values, begins_at }: GroupRun): Line {
  const shifted = steps.map((step) => step - begins_at);
  const first = Math.max(
    shifted.findLastIndex((step) => step <= 0),
    0,
  );
  return {
    steps: shifted.slice(first).map((step) => Math.max(step, 0)),
    values: values.slice(first),
  };
}

/** Mean over the runs of an arm, and one standard deviation around it; no spread with one run. */
export interface Band {
  steps: number[];
  mean: number[];
  low: (number | null)[];
  high: (number | null)[];
}

/**
 * Of the runs that have readings; between two readings a run lies on the straight line, and the band ends where the
 * first run ends.
 */
export function bandOf(runs: readonly GroupRun[]): Band {
  const lines = runs.map(lineOf).filter(({ steps }) => steps.length > 0);
  const end = Math.min(...lines.map(({ steps }) => steps.at(-1) ?? 0));
  const steps = [...new Set(lines.flatMap((line) => line.steps))]
    .filter((step) => step <= end)
    .toSorted((a, b) => a - b);
  const band: Band = { steps, mean: [], low: [], high: [] };
  for (const step of steps) {
    const values = lines.map((line) => valueAt(line, step));
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const spread = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : null;
    band.mean.push(mean);
    band.low.push(spread === null ? null : mean - spread);
    band.high.push(spread === null ? null : mean + spread);
  }
  return band;
}

function valueAt({ steps, values }: Line, step: number): number {
  const after = steps.findIndex((one) => one >= step);
  if (after === -1) return values.at(-1) ?? Number.NaN;
  const [x1, y1] = [steps[after] ?? step, values[after] ?? Number.NaN];
  if (after === 0 || x1 === step) return y1;
  const [x0, y0] = [steps[after - 1] ?? step, values[after - 1] ?? Number.NaN];
  return y0 + ((y1 - y0) * (step - x0)) / (x1 - x0);
}

/** The finished runs with readings; while none has finished, those that go on. */
export function shownRuns({ runs }: Pick<DrawnGroup, "runs">): GroupRun[] {
  const read = runs.filter(({ values }) => values.length > 0);
  const finished = read.filter(({ state }) => state === "finished");
  return finished.length > 0 ? finished : read;
}

export type Verdict = Bodies["ControlVerdict"];

export function verdictText({ leads }: Pick<Verdict, "leads">): string {
  return leads === null ? "needs two seeds" : leads ? "yes" : "no";
}
