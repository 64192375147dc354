/** Which metric comes first: what one looks at first when a run goes well or badly. Pure. */
import type { Catalog, MetricInfo } from "@/api/types";
import { formatName } from "@/lib/format";

const FIRST = [
  "reward/mean",
  "accuracy",
  "score",
  "loss",
  "kl",
  "entropy",
  "rollout/length",
  "mismatch_kl",
  "clip_fraction",
  "grad_norm",
  "reward/std",
  "lr",
];

/** Metrics that are shown without asking; the rest is one press away. */
export const SHOWN_AT_FIRST = 8;

export function orderMetrics(names: Iterable<string>): string[] {
  const rank = (name: string) => {
    const at = FIRST.indexOf(name.split("@")[0] ?? name);
    return at < 0 ? FIRST.length + (name.includes("@") ? 0 : 1) : at;
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
