import type { Gauges } from "@/api/types";
import { formatRate, formatShare } from "@/lib/format";
import { remember } from "@/lib/remember";

export interface StageRate {
  stage: string;
  /** "12.0 rows/s · 1.20k tok/s" of the whole time, or empty where it handles no rows. */
  rate: string;
  main: string;
  busyRate: string;
  /** Of the step's time, 0 to 1; of the time between evaluations where it runs in these only. */
  share: number;
  isEvaluation: boolean;
  isAside: boolean;
}

const NONE: readonly StageRate[] = [];

export function stageRates(gauges: Gauges | null, node: string): readonly StageRate[] {
  return (gauges && readRates(gauges).get(node)) ?? NONE;
}

const readRates = remember((gauges: Gauges): Map<string, StageRate[]> => {
  const byNode = new Map<string, StageRate[]>();
  for (const [name, gauge] of Object.entries(gauges.stages ?? {})) {
    const dot = name.indexOf(".");
    const [node, stage] = [name.slice(0, dot), name.slice(dot + 1)];
    const list = byNode.get(node) ?? [];
    list.push({
      stage,
      rate: rates(gauge.wall_samples_per_second, gauge.wall_tokens_per_second),
      main: rates(gauge.wall_samples_per_second, null) || rates(null, gauge.wall_tokens_per_second),
      busyRate: rates(gauge.samples_per_second, gauge.tokens_per_second),
      share: gauge.share,
      isEvaluation: gauge.evaluation,
      isAside: gauge.evaluation && gauges.nodes?.[node]?.evaluation === false,
    });
    byNode.set(node, list);
  }
  return byNode;
});

function rates(rows: number | null | undefined, tokens: number | null | undefined): string {
  const known = [
    (rows ?? null) === null ? "" : formatRate(rows, "rows"),
    (tokens ?? null) === null ? "" : formatRate(tokens, "tok"),
  ];
  return known.filter(Boolean).join(" · ");
}

/**
 * The rate of the first stage that has one: what its outputs come from, so that it is the one on its edges. What a node
 * does only for probes counts where it does nothing else.
 */
export function mainRate(rates: readonly StageRate[]): string {
  const told = rates.filter(({ main }) => main !== "");
  return (told.find(({ isAside }) => !isAside) ?? told[0])?.main ?? "";
}

export function wholeText({ stage, rate, busyRate, share, isEvaluation }: StageRate): string {
  const time = `${formatShare(share)} of the ${isEvaluation ? "time, in evaluations" : "step"}`;
  if (rate === "") return `${stage}: ${time}`;
  return `${stage}: ${rate} · ${time}\n   while busy ${busyRate}`;
}
