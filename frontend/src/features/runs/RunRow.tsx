import { Link, useLocation } from "wouter";
import type { Catalog, RunSummary } from "@/api/types";
import { orderMetrics } from "@/catalog/metrics";
import { formatAgo, formatMetric, formatSeconds } from "@/lib/format";
import { RunMenu } from "./RunMenu";
import { RunStateChip } from "./RunStateChip";

const SHOWN_METRICS = 2;

interface RunRowProps {
  run: RunSummary;
  /** Null until it is there: metrics then stand by name. */
  catalog: Catalog | null;
}

export function RunRow({ run, catalog }: RunRowProps) {
  const [, navigate] = useLocation();
  const metrics = latest(run, catalog);
  const share = run.steps_total ? Math.min(1, (run.step ?? 0) / run.steps_total) : null;
  return (
    <tr
      className="cursor-pointer border-line border-t hover:bg-hover [&>td]:px-4 [&>td]:py-2"
      onClick={() => navigate(`/runs/${run.id}`)}
    >
      <td className="max-w-72">
        <Link
          href={`/runs/${run.id}`}
          className="block truncate font-medium"
          title={run.name}
          onClick={(event) => event.stopPropagation()}
        >
          {run.name}
        </Link>
        <span className="block truncate font-mono text-faint text-xs" title={run.id}>
          {run.id}
        </span>
      </td>
      <td title={run.error?.message ?? run.message ?? undefined}>
        <RunStateChip state={run.state} />
      </td>
      <td>
        <span className="tabular text-xs">
          {run.step ?? "–"}
          {run.steps_total ? <span className="text-muted"> of {run.steps_total}</span> : null}
        </span>
        {share === null ? null : (
          <span className="mt-1 block h-1 overflow-hidden rounded-full bg-hover">
            <span className="block h-full bg-accent" style={{ width: `${share * 100}%` }} />
          </span>
        )}
      </td>
      <td className="max-w-64 text-xs">
        {metrics.map(([name, value]) => (
          <span key={name} className="block truncate">
            <span className="text-muted">{name}</span>{" "}
            <span className="tabular">{formatMetric(value)}</span>
          </span>
        ))}
      </td>
      <td className="tabular whitespace-nowrap text-right text-xs">{took(run)}</td>
      <td className="whitespace-nowrap text-right text-muted text-xs">
        {formatAgo(run.started_at ?? run.created_at)}
      </td>
      {/** biome-ignore lint/a11y/useKeyWithClickEvents: it takes no click itself, it keeps them from the row */}
      <td className="w-10" onClick={(event) => event.stopPropagation()}>
        <RunMenu run={run} />
      </td>
    </tr>
  );
}

/** The most telling metrics; a name is `node.metric`. */
function latest(run: RunSummary, catalog: Catalog | null): [string, number | null][] {
  const names = Object.keys(run.metrics ?? {});
  const metricOf = (name: string) => name.slice(name.indexOf(".") + 1);
  const order = orderMetrics(catalog, new Set(names.map(metricOf)));
  return names
    .toSorted((a, b) => order.indexOf(metricOf(a)) - order.indexOf(metricOf(b)))
    .slice(0, SHOWN_METRICS)
    .map((name) => [name, run.metrics?.[name] ?? null]);
}

function took(run: RunSummary): string {
  if (!run.started_at) return "–";
  const end = run.ended_at ? Date.parse(run.ended_at) : Date.now();
  return formatSeconds((end - Date.parse(run.started_at)) / 1000);
}
