/** Which metric comes first: what one looks at first when a run goes well or badly. Pure. */
import type { Catalog, MetricInfo } from "@/api/types";
import { formatName } from "@/lib/format";

/** Metrics that are shown without asking; the rest is one press away. */
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

export function metricInfo(catalog: Catalog, name: string): MetricInfo {
  const general = name.replace(/@\d+/, "@k");
  const tail = name.split(".").at(-1) ?? name;
  return (
    catalog.metrics?.[name] ??
    catalog.probe_metrics?.[general] ??
    catalog.probe_metrics?.[tail] ?? {
      title: formatName(name.replaceAll("/", ", ").replaceAll(".", ", ")),
      help: "",
      expect: "",
      better: "none",
      unit: null,
    }
  );
}
