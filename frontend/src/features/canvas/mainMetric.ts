/** The number that tells most about a node in a run, and its curve. Pure. */
import type { Catalog } from "@/api/types";
import { metricInfo, orderMetrics } from "@/catalog/metrics";
import type { LiveRun } from "@/live/LiveRun";
import type { Series } from "@/live/series";

export interface MainMetric {
  name: string;
  title: string;
  series: Series;
}

/** Of its own metrics the first in the catalog's order; of a scorer what others learn from it. */
export function mainMetric(catalog: Catalog, live: LiveRun, node: string): MainMetric | null {
  const { series } = live.state;
  const own = [...series].filter(([, byNode]) => byNode.has(node)).map(([name]) => name);
  const [best] = orderMetrics(catalog, own);
  const found = best === undefined ? undefined : series.get(best)?.get(node);
  if (best !== undefined && found) {
    return { name: best, title: metricInfo(catalog, best).title, series: found };
  }
  for (const [name, byNode] of series) {
    if (!name.endsWith(`/${node}`)) continue;
    const [first] = byNode.values();
    if (first) return { name, title: metricInfo(catalog, name).title, series: first };
  }
  return null;
}

const POINTS = 40;

/** The last part of a curve as the path of a line, in a box of this size. */
export function sparkline(series: Series, width: number, height: number): string {
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

/** As many as there is room for, each the mean of what it stands for. */
function thinned(values: readonly number[]): number[] {
  if (values.length <= POINTS) return [...values];
  const each = values.length / POINTS;
  return Array.from({ length: POINTS }, (_, index) => {
    const part = values.slice(Math.floor(index * each), Math.floor((index + 1) * each));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}
