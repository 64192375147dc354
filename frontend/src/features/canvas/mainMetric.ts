import type { Catalog } from "@/api/types";
import { metricInfo, orderMetrics } from "@/catalog/metrics";
import { formatMetric } from "@/lib/format";
import type { LiveRun } from "@/live/LiveRun";
import type { Series } from "@/live/series";

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

const told = new WeakMap<Series, { version: number; text: string }>();

/** Newest value, name and line of a curve, as one comparable text; made once for each of its points. */
export function stripText({ title, series }: MainMetric, width: number, height: number): string {
  const known = told.get(series);
  if (known?.version === series.version) return known.text;
  const line = sparkline(series, width, height);
  const text = `${formatMetric(series.last?.value)}|${title}|${line}`;
  told.set(series, { version: series.version, text });
  return text;
}

const POINTS = 40;

function sparkline(series: Series, width: number, height: number): string {
  const values = thinned(series.values.filter(Number.isFinite));
  if (values.length < 2) return "";
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const range = most - least || 1;
  return values
    .map((value, index) => {
      const x = (index / (values.length - 1)) * width;
      const y = height - ((value - least) / range) * height;
      return `${index === 0 ? "M" : "L"}${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join("");
}

function thinned(values: readonly number[]): number[] {
  if (values.length <= POINTS) return [...values];
  const each = values.length / POINTS;
  return Array.from({ length: POINTS }, (_, index) => {
    const part = values.slice(Math.floor(index * each), Math.floor((index + 1) * each));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}
