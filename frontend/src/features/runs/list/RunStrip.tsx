import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fetchRuns } from "@/api/routes";
import type { Catalog, RunSummary } from "@/api/types";
import { metricInfo, metricOf } from "@/catalog/metrics";
import { formatMetric, formatName } from "@/lib/format";
import { isFinal } from "@/live/reducer";
import { useCatalog, useOpenLoop, useSync } from "@/state/document/context";
import { type Spark, useSparks } from "@/state/queries";
import { Ago } from "@/ui/Ago";
import { Sparkline } from "@/ui/Sparkline";
import { ChangedSince } from "./ChangedSince";
import { RunMenu } from "./RunMenu";

const SHOWN = 8;
const REFRESH = 2000;

export function RunStrip() {
  const { loopId } = useOpenLoop();
  const catalog = useCatalog();
  const hash = useSync((state) => state.check?.spec_hash ?? null);
  const runs = useQuery({
    queryKey: ["runs", "strip", loopId],
    queryFn: () => fetchRuns({ loop_id: loopId ?? "", limit: SHOWN }),
    enabled: loopId !== null,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.items.some((run) => !isFinal(run.state)) ? REFRESH : false,
  });
  const shown = (runs.data?.items ?? []).toSorted((a, b) => rank(a) - rank(b));
  const sparks = useSparks(shown, catalog);
  if (shown.length === 0) return null;
  const hidden = (runs.data?.total ?? 0) - shown.length;
  return (
    <section
      aria-label="Runs of this loop"
      className="flex h-13 shrink-0 items-center gap-2 border-line border-t bg-surface px-3"
    >
      <h2 className="shrink-0 text-muted text-xs">Runs</h2>
      <ol className="flex min-w-0 flex-1 gap-2 overflow-x-auto py-1">
        {shown.map((run, place) => (
          <RunChip
            key={run.id}
            run={run}
            spark={sparks.get(run.id)}
            catalog={catalog}
            isChanged={isChangedSince(run, hash)}
            other={shown[place + 1]}
          />
        ))}
      </ol>
      {hidden > 0 ? (
        <Link href="/runs" className="shrink-0 text-accent-text text-xs underline">
          {hidden} more
        </Link>
      ) : null}
    </section>
  );
}

function rank(run: RunSummary): number {
  return isFinal(run.state) || run.state === "queued" ? 1 : 0;
}

interface RunChipProps {
  run: RunSummary;
  spark: Spark | undefined;
  catalog: Catalog;
  isChanged: boolean;
  /** The run before it, with which it can be compared. */
  other: RunSummary | undefined;
}

function RunChip({ run, spark, catalog, isChanged, other }: RunChipProps) {
  const value = spark ? run.metrics[spark.metric] : undefined;
  return (
    <li className="flex h-9 shrink-0 items-center rounded-2 border border-line bg-raised pl-2.5 hover:border-line-strong">
      <Link href={`/runs/${run.id}`} className="flex items-center gap-2" title={run.id}>
        <StateDot state={run.state} />
        <span className="whitespace-nowrap text-xs">
          {isFinal(run.state) ? <Ago at={run.ended_at ?? run.created_at} /> : progressOf(run)}
        </span>
        {spark ? (
          <>
            <Sparkline
              values={spark.values}
              width={56}
              height={18}
              label={`${metricInfo(catalog, metricOf(spark.metric)).title}: ${formatMetric(value)}`}
            />
            <span aria-hidden="true" className="tabular text-muted text-xs">
              {formatMetric(value)}
            </span>
          </>
        ) : null}
      </Link>
      {isChanged ? (
        <span className="ml-2">
          <ChangedSince run={run} label="changed since" />
        </span>
      ) : null}
      <span className="px-1">
        <RunMenu run={run} other={other} />
      </span>
    </li>
  );
}

const DOTS: Record<RunSummary["state"], string> = {
  starting: "bg-accent motion-safe:animate-pulse",
  running: "bg-accent motion-safe:animate-pulse",
  stopped: "bg-line-strong",
  finished: "bg-success-mark",
  failed: "bg-error",
  stopping: "bg-warning-mark",
  queued: "border border-line-strong",
};

function StateDot({ state }: { state: RunSummary["state"] }) {
  return (
    <>
      <span className={`size-2 shrink-0 rounded-full ${DOTS[state]}`} title={formatName(state)} />
      <span className="sr-only">{formatName(state)}</span>
    </>
  );
}

function progressOf(run: RunSummary): string {
  if (run.state === "queued") return run.place === null ? "queued" : `queued, number ${run.place}`;
  if (run.step === null) return run.state;
  return run.steps_total ? `step ${run.step} of ${run.steps_total}` : `step ${run.step}`;
}

/** False where both mean the same, or one of them is not known. */
export function isChangedSince(run: RunSummary, hash: string | null): boolean {
  return hash !== null && run.spec_hash !== null && run.spec_hash !== hash;
}
