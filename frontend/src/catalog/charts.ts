/** Which curves stand on which chart: those that the catalog puts together, then each metric alone. Pure. */
import type { Catalog, MetricInfo } from "@/api/types";
import { metricInfo, orderMetrics } from "./metrics";

export interface CurveName {
  metric: string;
  node: string;
}

export interface ChartPlan {
  name: string;
  info: MetricInfo;
  curves: readonly CurveName[];
  isMain: boolean;
}

type Known = ReadonlyMap<string, readonly string[]>;

/**
 * @param known by metric, the nodes that told it
 * @param ports teaching ports at which nodes of the loop learn
 */
export function planCharts(
  catalog: Catalog,
  known: Known,
  ports: ReadonlySet<string>,
): ChartPlan[] {
  const main = catalog.charts
    .filter((chart) => chart.ports.length === 0 || chart.ports.some((port) => ports.has(port)))
    .flatMap((chart): ChartPlan[] => {
      const curves = chart.metrics.flatMap((metric) => curvesOf(metric, known));
      const [first] = curves;
      if (first === undefined) return [];
      const info = { ...metricInfo(catalog, first.metric), title: chart.title };
      return [{ name: chart.name, info, curves, isMain: true }];
    });
  const shown = new Set(main.flatMap(({ curves }) => curves.map(({ metric }) => metric)));
  const rest = orderMetrics(catalog, known.keys()).filter((metric) => !shown.has(metric));
  return [
    ...main,
    ...rest.map((metric) => ({
      name: metric,
      info: metricInfo(catalog, metric),
      curves: (known.get(metric) ?? []).map((node) => ({ metric, node })),
      isMain: false,
    })),
  ];
}

/** Of an evaluation `judge.agreement` is `agreement` as well. */
function curvesOf(name: string, known: Known): CurveName[] {
  const meant = [...known].filter(
    ([metric]) => metric === name || metric.split(".").some((part) => part === name),
  );
  return meant.flatMap(([metric, nodes]) => nodes.map((node) => ({ metric, node })));
}

export function curveLabel(
  catalog: Catalog,
  curve: CurveName,
  curves: readonly CurveName[],
): string {
  const same = curves.filter(({ node }) => node === curve.node);
  if (same.length < 2) return curve.node;
  const { title } = metricInfo(catalog, curve.metric);
  const before = curve.metric.split(".").slice(0, -1).join(" ");
  return `${curve.node} ${before ? `${before} ` : ""}${title.toLowerCase()}`;
}
