/** What the stages of one node do, in words. Pure. */
import type { Gauges } from "@/api/types";
import { formatRate, formatShare } from "@/lib/format";

export interface StageRate {
  /** Its name within the node. */
  stage: string;
  /** "12.0 rows/s · 1.20k tok/s", or empty where it handles no rows. */
  rate: string;
  /** Of the step's time, 0 to 1. */
  share: number;
}

export function stageRates(gauges: Gauges | null, node: string): StageRate[] {
  const prefix = `${node}.`;
  return Object.entries(gauges?.stages ?? {})
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, gauge]) => ({
      stage: name.slice(prefix.length),
      rate: [
        gauge.samples_per_second === null ? "" : formatRate(gauge.samples_per_second, "rows"),
        gauge.tokens_per_second === null ? "" : formatRate(gauge.tokens_per_second, "tok"),
      ]
        .filter(Boolean)
        .join(" · "),
      share: gauge.share,
    }));
}

/** The stages with a rate that take the most time, as many as there are lines for, in their order. */
export function mainRates(rates: readonly StageRate[], lines: number): StageRate[] {
  const main = rates
    .filter(({ rate }) => rate !== "")
    .toSorted((a, b) => b.share - a.share)
    .slice(0, lines);
  return rates.filter((one) => main.includes(one));
}

export function rateText({ stage, rate }: StageRate): string {
  return `${stage} ${rate}`;
}

export function wholeText({ stage, rate, share }: StageRate): string {
  const time = `${formatShare(share)} of the step`;
  return `${stage}: ${rate === "" ? time : `${rate} · ${time}`}`;
}
