import type { Catalog, MetricInfo } from "@/api/types";
import { formatName } from "@/lib/format";

export const SHOWN_AT_FIRST = 8;

/** In the catalog's order; then those that stand for one number of samples, then by name. */
export function orderMetrics(
  catalog: Pick<Catalog, "chart_order"> | null,
  names: Iterable<string>,
): string[] {
  const first = catalog?.chart_order ?? [];
  const rank = (name: string) => {
    const at = first.indexOf(name.split("@")[0] ?? name);
    return at < 0 ? first.length + (name.includes("@") ? 0 : 1) : at;
  };
  return [...names].toSorted((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

export function metricOf(path: string): string {
  return path.slice(path.indexOf(".") + 1);
}

/** Of paths `node.metric` those that say most of a run: what a probe measures before what is trained on. */
export function tellingMetrics(
  catalog: Pick<Catalog, "chart_order" | "probe_metrics"> | null,
  paths: readonly string[],
  count: number,
): string[] {
  const order = orderMetrics(catalog, new Set(paths.map(metricOf)));
  const rank = new Map(order.map((name, place) => [name, place]));
  const trained = new Set(
    paths.filter((path) => !nameOfProbe(catalog, metricOf(path))).map((path) => nodeOf(path)),
  );
  const place = (path: string) =>
    (trained.has(nodeOf(path)) ? rank.size : 0) + (rank.get(metricOf(path)) ?? 0);
  return paths.toSorted((a, b) => place(a) - place(b)).slice(0, count);
}

function nodeOf(path: string): string {
  return path.slice(0, path.indexOf("."));
}

/** `reward/exact` is what the catalog calls `reward/<scorer>`. */
function ofFamily(catalog: Catalog, name: string): MetricInfo | undefined {
  const family = name.split("/")[0] ?? name;
  const key = Object.keys(catalog.metrics ?? {}).find((one) => one.startsWith(`${family}/<`));
  return key === undefined ? undefined : catalog.metrics?.[key];
}

/**
 * Of `judge.win_rate.actor` the part that a probe may measure: scorers stand before it, players behind. A learner has
 * metrics of that name, too, but never those alone.
 */
function nameOfProbe(
  catalog: Pick<Catalog, "probe_metrics"> | null,
  name: string,
): string | undefined {
  const parts = name.replace(/@\d+/, "@k").split(".").toReversed();
  return parts.find((part) => catalog?.probe_metrics?.[part] !== undefined);
}

export function metricInfo(catalog: Catalog, name: string): MetricInfo {
  return (
    catalog.metrics?.[name] ??
    catalog.probe_metrics?.[nameOfProbe(catalog, name) ?? ""] ??
    ofFamily(catalog, name) ?? {
      title: formatName(name.replaceAll("/", ", ").replaceAll(".", ", ")),
      help: "",
      expect: "",
      better: "none",
      unit: null,
    }
  );
}
