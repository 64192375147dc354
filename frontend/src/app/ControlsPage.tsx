import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fetchControls, fetchRun } from "@/api/routes";
import type { Bodies } from "@/api/types";
import { metricInfo, metricOf } from "@/catalog/metrics";
import { ArmsChart } from "@/features/runs/controls/ArmsChart";
import { ArmRuns, ArmsTable } from "@/features/runs/controls/ArmsTable";
import { kindTitle } from "@/features/runs/controls/arms";
import { ControlForm } from "@/features/runs/controls/ControlForm";
import { isFinal } from "@/live/reducer";
import { useServerCatalog } from "@/state/queries";
import { Empty } from "@/ui/States";
import { PageShell, Unopened } from "./PageShell";

const REFRESH = 3000;
type Controls = Bodies["RunControls"];

export function ControlsPage({ id }: { id: string }) {
  const run = useQuery({ queryKey: ["runs", "one", id], queryFn: () => fetchRun(id) });
  const controls = useQuery({
    queryKey: ["controls", id],
    queryFn: () => fetchControls(id),
    refetchInterval: ({ state }) => (goesOn(state.data) ? REFRESH : false),
  });
  const catalog = useServerCatalog().data ?? null;
  const { data } = controls;
  if (!data || !run.data) {
    const error = controls.error ?? run.error;
    return (
      <Unopened
        title="Run"
        href="/runs"
        all="All runs"
        error={error}
        onRetry={() => void controls.refetch()}
      >
        Its folder may have been moved or deleted.
      </Unopened>
    );
  }
  const metric = data.metric ?? "";
  const groups = data.arms.map(({ kind, runs }) => ({ key: kind, title: kindTitle(kind), runs }));
  const title = catalog ? metricInfo(catalog, metricOf(metric)).title : metric;
  return (
    <PageShell
      title={`Controls of ${run.data.name}`}
      isWide
      actions={
        <Link
          href={`/runs/${encodeURIComponent(id)}`}
          className="text-accent-text text-sm underline"
        >
          The run
        </Link>
      }
    >
      <div className="grid items-start gap-3 lg:grid-cols-[340px_minmax(0,1fr)]">
        <div className="flex flex-col gap-3">
          <ControlForm run={id} />
          <ArmRuns arms={data.arms} />
        </div>
        <div className="flex min-w-0 flex-col gap-3">
          {data.arms.some(({ runs }) => runs.some(({ values }) => values.length > 0)) ? (
            <ArmsChart title={`${title} (${metric})`} begins={data.begins} groups={groups} />
          ) : (
            <Empty title="No readings yet">The metric {metric} has not been reported.</Empty>
          )}
          <section
            aria-label="Comparison"
            className="overflow-x-auto rounded-2 border border-line bg-surface p-3"
          >
            <h2 className="mb-1 font-medium text-sm">Does the whole loop lead?</h2>
            <ArmsTable arms={data.arms} verdicts={data.comparisons} />
            <p className="mt-2 text-muted text-xs">
              Start: the last reading before the arms differ. Spread: standard deviation of the end
              over seeds. The whole loop leads if the difference is larger than the spread of
              either.
            </p>
          </section>
        </div>
      </div>
    </PageShell>
  );
}

function goesOn(data: Controls | undefined): boolean {
  return data?.arms.some(({ runs }) => runs.some(({ state }) => !isFinal(state))) ?? false;
}
