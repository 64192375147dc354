import { useQuery } from "@tanstack/react-query";
import { GitFork } from "lucide-react";
import { Link, useLocation } from "wouter";
import { fetchRunTags } from "@/api/routes";
import type { Catalog, RunSummary } from "@/api/types";
import { metricInfo, metricOf, tellingMetrics } from "@/catalog/metrics";
import { MAX_COMPARED } from "@/lib/colors";
import { formatCount, formatMetric, formatPlural, formatSeconds, secondsOf } from "@/lib/format";
import { type Spark, useServerCatalog, useSparks } from "@/state/queries";
import { Ago } from "@/ui/Ago";
import { Badge } from "@/ui/Badge";
import { classes } from "@/ui/classes";
import { Sparkline } from "@/ui/Sparkline";
import { isBetter, outcomeText, type RunOutcome } from "../family/outcome";
import { useOutcomes } from "../family/useOutcomes";
import { RunMenu } from "./RunMenu";
import { RunStateChip } from "./RunStateChip";

interface RunTableProps {
  runs: readonly RunSummary[];
  chosen: ReadonlyMap<string, RunSummary>;
  onChoose: (run: RunSummary, isChosen: boolean) => void;
  onTag: (tag: string) => void;
}

export function useRunTags(): readonly string[] {
  const tags = useQuery({ queryKey: ["runs", "tags"], queryFn: fetchRunTags });
  return tags.data ?? [];
}

export function RunTable({ runs, chosen, onChoose, onTag }: RunTableProps) {
  const catalog = useServerCatalog().data ?? null;
  const outcomes = useOutcomes(runs);
  const sparks = useSparks(runs, catalog, outcomes.main);
  const names = new Map(runs.map((run) => [run.id, run.name]));
  const tags = useRunTags();
  const isFull = chosen.size >= MAX_COMPARED;
  return (
    <table className="w-full text-sm">
      <thead className="text-left text-muted text-xs">
        <tr className="[&>th]:px-3 [&>th]:py-2 [&>th]:font-medium">
          <th>
            <span className="sr-only">Choose</span>
          </th>
          <th>Run</th>
          <th>State</th>
          <th className="w-32">Step</th>
          <th className="w-60">Main metric</th>
          <th className="text-right">Took</th>
          <th className="text-right">Started</th>
          <th>
            <span className="sr-only">More</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunRow
            key={run.id}
            run={run}
            catalog={catalog}
            spark={sparks.get(run.id)}
            outcome={outcomes.byRun.get(run.id)}
            parent={names.get(run.parent_id ?? "")}
            tags={tags}
            isChosen={chosen.has(run.id)}
            isRefused={isFull && !chosen.has(run.id)}
            onChoose={(isChosen) => onChoose(run, isChosen)}
            onTag={onTag}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RunRowProps {
  run: RunSummary;
  catalog: Catalog | null;
  spark: Spark | undefined;
  outcome?: RunOutcome | undefined;
  /** Name of the run that it was forked from, if that is in the table. */
  parent?: string | undefined;
  tags: readonly string[];
  isChosen: boolean;
  isRefused: boolean;
  onChoose: (isChosen: boolean) => void;
  onTag: (tag: string) => void;
}

export function RunRow(props: RunRowProps) {
  const { run, catalog, spark, outcome, tags, isChosen, isRefused, onChoose } = props;
  const [, navigate] = useLocation();
  const share = run.steps_total ? Math.min(1, (run.step ?? 0) / run.steps_total) : null;
  return (
    <tr
      data-chosen={isChosen || undefined}
      className="cursor-pointer border-line border-t hover:bg-hover data-chosen:bg-accent-soft [&>td]:px-3 [&>td]:py-2"
      onClick={() => navigate(`/runs/${run.id}`)}
    >
      <Still>
        <input
          type="checkbox"
          aria-label={`Choose ${run.name}`}
          title={isRefused ? `${MAX_COMPARED} runs are chosen, the maximum` : undefined}
          disabled={isRefused}
          className="size-4 accent-(--accent)"
          checked={isChosen}
          onChange={(event) => onChoose(event.target.checked)}
        />
      </Still>
      <td className="max-w-80">
        <NameOf {...props} />
      </td>
      <td title={run.error?.message ?? run.message ?? undefined}>
        <span className="flex flex-wrap gap-1">
          <RunStateChip state={run.state} />
          <Alerts run={run} />
        </span>
      </td>
      <td>
        <span className="tabular text-xs">
          {formatCount(run.step)}
          {run.steps_total ? (
            <span className="text-muted"> of {formatCount(run.steps_total)}</span>
          ) : null}
        </span>
        {share === null ? null : (
          <span className="mt-1 block h-1 overflow-hidden rounded-full bg-hover">
            <span className="block h-full bg-muted" style={{ width: `${share * 100}%` }} />
          </span>
        )}
      </td>
      <td>
        <Latest run={run} catalog={catalog} spark={spark} outcome={outcome} />
      </td>
      <td className="tabular whitespace-nowrap text-right text-xs">
        {formatSeconds(secondsOf(run, Date.now()))}
      </td>
      <td className="whitespace-nowrap text-right text-muted text-xs">
        <Ago at={run.started_at ?? run.created_at} />
      </td>
      <Still>
        <RunMenu run={run} tags={tags} />
      </Still>
    </tr>
  );
}

function Still({ children }: { children: React.ReactNode }) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: it takes no click itself, it keeps them from the row
    <td className="w-10" onClick={(event) => event.stopPropagation()}>
      {children}
    </td>
  );
}

function NameOf({ run, parent, onTag }: RunRowProps) {
  return (
    <>
      <Link
        href={`/runs/${run.id}`}
        className="block truncate font-medium"
        title={run.name}
        onClick={(event) => event.stopPropagation()}
      >
        {run.name}
      </Link>
      <span className="flex min-w-0 items-center gap-1">
        {run.id === run.name ? null : (
          <span className="truncate font-mono text-muted text-xs" title={run.id}>
            {run.id}
          </span>
        )}
        {run.parent_id ? (
          <Link
            href={`/runs/${encodeURIComponent(run.parent_id)}`}
            className="flex max-w-56 items-center gap-1 truncate text-muted text-xs hover:text-text"
            title={`Forked from ${run.parent_id}`}
            onClick={(event) => event.stopPropagation()}
          >
            <GitFork size={12} aria-hidden="true" className="shrink-0" />
            <span className="truncate">fork of {parent ?? run.parent_id}</span>
          </Link>
        ) : null}
        {run.tags.map((tag) => (
          <button
            key={tag}
            type="button"
            title={`Only runs with the tag ${tag}`}
            className="max-w-32 shrink-0 truncate rounded-full bg-hover px-2 text-muted text-xs hover:bg-pressed hover:text-text"
            onClick={(event) => {
              event.stopPropagation();
              onTag(tag);
            }}
          >
            {tag}
          </button>
        ))}
      </span>
    </>
  );
}

function Alerts({ run }: { run: RunSummary }) {
  const open = run.alerts.filter(
    (alert) => alert.state !== "cleared" && alert.acknowledged_at === null,
  );
  if (open.length === 0) return null;
  const words = open.map((alert) => alert.message).join("\n");
  return (
    <Badge tone={open.some((alert) => alert.level === "error") ? "error" : "warning"} title={words}>
      {formatPlural(open.length, "alert")}
    </Badge>
  );
}

type LatestProps = Pick<RunRowProps, "run" | "catalog" | "spark" | "outcome">;

function Latest({ run, catalog, spark, outcome }: LatestProps) {
  if (outcome?.metric && outcome.end) return <Outcome outcome={outcome} spark={spark} />;
  const [path] = tellingMetrics(catalog, Object.keys(run.metrics), 1);
  if (path === undefined) return <span className="text-faint text-xs">–</span>;
  const title = catalog ? metricInfo(catalog, metricOf(path)).title : metricOf(path);
  const node = path.slice(0, path.indexOf("."));
  return (
    <span className="flex items-center gap-3">
      <span className="w-22">
        {spark ? <Sparkline values={spark.values} label={`${title} of ${node}`} /> : null}
      </span>
      <span className="min-w-0 text-xs">
        <span className="tabular block font-medium">{formatMetric(run.metrics[path])}</span>
        <span className="block max-w-40 truncate text-muted" title={path}>
          {title}
        </span>
      </span>
    </span>
  );
}

/** The metric by which runs of the loop are compared: its first and its last reading. */
function Outcome({ outcome, spark }: { outcome: RunOutcome; spark: Spark | undefined }) {
  const better = isBetter(outcome);
  return (
    <span className="flex items-center gap-3">
      <span className="w-22">
        {spark ? <Sparkline values={spark.values} label={`${outcome.title} of the run`} /> : null}
      </span>
      <span className="min-w-0 text-xs">
        <span
          className={classes(
            "tabular block font-medium",
            better === true && "text-success",
            better === false && "text-warning",
          )}
        >
          {outcomeText(outcome)}
        </span>
        <span className="block max-w-40 truncate text-muted" title={outcome.metric ?? undefined}>
          {outcome.title}
        </span>
      </span>
    </span>
  );
}
