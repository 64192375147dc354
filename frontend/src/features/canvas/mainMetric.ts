import type { Catalog } from "@/api/types";
import { metricInfo, orderMetrics } from "@/catalog/metrics";
import { mean } from "@/lib/statistics";
import type { LiveRun } from "@/live/LiveRun";
import type { Series } from "@/live/series";
import { sparkPath } from "@/ui/Sparkline";

export interface MainMetric {
  name: string;
  title: string;
  series: Series;
}

type AllSeries = LiveRun["state"]["series"];

const found = new WeakMap<AllSeries, { count: number; byNode: Map<string, MainMetric | null> }>();

/** Sought once for each node, until there are more curves. */
export function mainMetric(catalog: Catalog, live: LiveRun, node: string): MainMetric | null {
  const { series } = live.state;
  let count = 0;
  for (const byNode of series.values()) count += byNode.size;
  let known = found.get(series);
  if (known?.count !== count) {
    known = { count, byNode: new Map() };
    found.set(series, known);
  }
  let metric = known.byNode.get(node);
  if (metric === undefined) {
    metric = seekMetric(catalog, series, node);
    known.byNode.set(node, metric);
  }
  return metric;
}

/** Of its own metrics the first in the catalog's order; of a scorer what others learn from it. */
function seekMetric(catalog: Catalog, series: AllSeries, node: string): MainMetric | null {
  const own = [...series].filter(([, byNode]) => byNode.has(node)).map(([name]) => name);
  const [best] = orderMetrics(catalog, own);
  const curve = best === undefined ? undefined : series.get(best)?.get(node);
  if (best !== undefined && curve) {
    return { name: best, title: metricInfo(catalog, best).title, series: curve };
  }
  for (const [name, byNode] of series) {
    if (!name.endsWith(`/${node}`)) continue;
    const [first] = byNode.values();
    if (first) return { name, title: metricInfo(catalog, name).title, series: first };
  }
  return null;
}

const lines = new WeakMap<Series, { version: number; line: string }>();

/** The line of a curve, made once for each of its points. */
export function lineOf(series: Series, width: number, height: number): string {
  const known = lines.get(series);
  if (known?.version === series.version) return known.line;
  const values = thinned(series.values.filter(Number.isFinite));
  const line = values.length < 2 ? "" : sparkPath(values, width, height);
  lines.set(series, { version: series.version, line });
  return line;
}

const POINTS = 40;

function thinned(values: readonly number[]): (number | null)[] {
  if (values.length <= POINTS) return [...values];
  const each = values.length / POINTS;
  return Array.from({ length: POINTS }, (_, index) => {
    const part = values.slice(Math.floor(index * each), Math.floor((index + 1) * each));
    return mean(part);
  });
}
