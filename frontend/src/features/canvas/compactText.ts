/** The one number of a compact card. Pure. */
import type { TellingValue } from "@/document/telling";
import { formatBrief } from "@/lib/format";
import type { MainMetric } from "./mainMetric";
import { mainRate, type StageRate } from "./stageText";

/** Of a learner how it learns; else the first number that its kind calls telling, with what it counts. */
export function settingNumber(values: readonly TellingValue[], learning: string): string {
  if (learning !== "") return learning.split(" · ")[0] ?? "";
  const found = values.find(({ text }) => /^[\d.,]+$/.test(text)) ?? values[0];
  if (!found) return "";
  return /^[\d.,]+$/.test(found.text) ? `${found.text} ${found.label}` : found.text;
}

/** Rows a second of the node's main stage, without what it counts. */
export function rateNumber(rates: readonly StageRate[]): string {
  return mainRate(rates).replace(/ \w+\//, "/");
}

/** Newest value and title of a metric, as one comparable text. */
export function liveNumber(metric: MainMetric | null): string {
  if (metric === null || metric.series.last === undefined) return "";
  return `${formatBrief(metric.series.last?.value)}|${metric.title}`;
}
