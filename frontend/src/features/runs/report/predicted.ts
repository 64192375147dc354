/** What a run's report says of its times, rates and memory: as predicted, and as measured. Pure. */
import type { RunReport } from "@/api/types";
import { formatBytes, formatCount, formatPlural, formatSeconds } from "@/lib/format";

export interface Compared {
  name: string;
  isStep: boolean;
  predicted: number | null;
  measured: number | null;
}

/** How many times what was predicted was measured; null where either is not known. */
function timesPredicted({ predicted, measured }: Compared): number | null {
  return predicted && measured ? measured / predicted : null;
}

const MUCH = 1.5;

/** How far the prediction was off: a share of what was measured, or how many times where that says more. */
export function errorText(row: Compared): string {
  if (row.measured === null) return "not measured";
  if (row.predicted === null) return "not predicted";
  const times = timesPredicted(row);
  if (times === null) return "–";
  if (times >= MUCH) return `${timesText(times)} × too low`;
  if (times <= 1 / MUCH) return `${timesText(1 / times)} × too high`;
  const error = (1 / times - 1) * 100;
  return `${error > 0 ? "+" : "−"}${Math.abs(error).toFixed(Math.abs(error) < 10 ? 1 : 0)} %`;
}

function timesText(times: number): string {
  return times < 10 ? String(Number(times.toFixed(1))) : formatCount(Math.round(times));
}

type Numbers = Readonly<Record<string, number | null | undefined>>;

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

export function timesOf({ phase, predicted, measured }: RunReport): Compared[] {
  const step: Compared = {
    name: phase ? `A step of ${phase}` : "A step",
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

const NEAR = 1.1;

/** What the report found, in a few sentences: how long a step took, what was furthest off, and why.
 * Stages of `evaluations` are in no step. */
export function findingOf(report: RunReport, evaluations: readonly string[] = []): string {
  const [step, ...rows] = timesOf(report);
  if (!step || timesPredicted(step) === null) return "";
  const inStep = rows.filter(({ name }) => !evaluations.includes(name));
  return [
    stepText(step, report.measured.steps ?? 0),
    furthestText(report, inStep),
    memoryText(memoryOf(report)),
  ]
    .filter((text) => text !== "")
    .join(" ");
}

function isNear(times: number): boolean {
  return times < NEAR && times > 1 / NEAR;
}

function stepText(step: Compared, count: number): string {
  const times = timesPredicted(step) ?? 1;
  const said = formatSeconds(step.predicted);
  const mean = count > 0 ? ` (mean of ${formatPlural(count, "step")})` : "";
  const took = `${step.name} took ${formatSeconds(step.measured)}${mean}`;
  if (isNear(times)) return `${took}, as predicted (${said}).`;
  if (times >= MUCH) return `${took}, ${timesText(times)} times the ${said} predicted.`;
  const share = Math.abs(times - 1) * 100;
  return `${took}, ${share.toFixed(0)} % ${times > 1 ? "more" : "less"} than the ${said} predicted.`;
}

function furthestText(report: RunReport, rows: readonly Compared[]): string {
  const missed = (row: Compared) => Math.abs((row.measured ?? 0) - (row.predicted ?? 0));
  const [row] = rows
    .filter((one) => timesPredicted(one) !== null)
    .toSorted((a, b) => missed(b) - missed(a));
  const times = row ? timesPredicted(row) : null;
  if (!row || times === null || isNear(times)) return "";
  const why = reasonText(
    times,
    ratesOf(report).find(({ name }) => name === row.name),
  );
  return `The largest error is in ${row.name}, ${formatSeconds(row.measured)} instead of ${formatSeconds(row.predicted)}${why && `: ${why}`}.`;
}

/** A stage takes longer by more tokens or by fewer of them a second. */
function reasonText(times: number, rate: Compared | undefined): string {
  const faster = rate ? timesPredicted(rate) : null;
  if (!rate || faster === null) return "";
  const tokens = times * faster;
  const speed = `it processed ${formatCount(rate.measured)} tokens per second, not ${formatCount(rate.predicted)}`;
  const amount =
    tokens >= 1
      ? `on ${timesText(tokens)} times the tokens`
      : `on ${(100 * tokens).toFixed(0)} % of the tokens`;
  if (isNear(tokens)) return speed;
  if (isNear(faster)) return `it worked ${amount}`;
  return `${speed}, ${tokens > 1 === times > 1 ? "and" : "though"} ${amount}`;
}

function memoryText(rows: readonly Compared[]): string {
  const [most] = rows;
  const times = most ? timesPredicted(most) : null;
  if (!most || times === null || isNear(times)) return "";
  return `Peak memory was ${formatBytes(most.measured)}; ${formatBytes(most.predicted)} was predicted.`;
}
