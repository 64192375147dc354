import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fetchSweep } from "@/api/routes";
import { ArmsChart } from "@/features/runs/controls/ArmsChart";
import { byRank } from "@/features/runs/sweep/names";
import { StopLosers } from "@/features/runs/sweep/StopLosers";
import { type Sweep, SweepTable } from "@/features/runs/sweep/SweepTable";
import { MAX_COMPARED } from "@/lib/colors";
import { formatPlural } from "@/lib/format";
import { isFinal } from "@/live/reducer";
import { Empty } from "@/ui/States";
import { PageShell, Unopened } from "./PageShell";

const REFRESH = 3000;

/** Runs with several values of some settings: one table and one chart. */
export function SweepPage({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ["sweep", name],
    queryFn: () => fetchSweep(name),
    refetchInterval: ({ state }) => (goesOn(state.data) ? REFRESH : false),
  });
  const { data } = query;
  if (!data) {
    return (
      <Unopened
        title="Sweep"
        href="/runs"
        all="All runs"
        error={query.error}
        onRetry={() => void query.refetch()}
      >
        Its runs may have been deleted.
      </Unopened>
    );
  }
  const variants = byRank(data.variants);
  const runs = data.variants.flatMap((variant) => variant.runs);
  const ended = runs.filter(({ state }) => isFinal(state)).length;
  const drawn = variants.slice(0, MAX_COMPARED);
  const compared = drawn.flatMap((variant) => variant.runs.slice(0, 1).map(({ run }) => run));
  const groups = drawn.map(({ label, runs }) => ({ key: label, title: label, runs }));
  const title = data.metric ? `${data.title} (${data.metric})` : "No metric";
  return (
    <PageShell
      title={`Sweep of ${data.loop}`}
      isWide
      actions={
        <div className="flex flex-wrap items-center gap-3">
          <StopLosers sweep={data} />
          {compared.length > 1 ? (
            <Link
              href={`/runs/compare?runs=${compared.map(encodeURIComponent).join(",")}`}
              className="text-accent-text text-sm underline"
            >
              Compare the best
            </Link>
          ) : null}
        </div>
      }
    >
      <div className="flex flex-col gap-3">
        <p className="tabular text-muted text-sm">
          {formatPlural(data.variants.length, "combination")}, {formatPlural(runs.length, "run")},{" "}
          {ended} ended
        </p>
        {runs.some(({ values }) => values.length > 0) ? (
          <ArmsChart title={title} begins={null} groups={groups} />
        ) : (
          <Empty title="No readings yet">
            {data.metric
              ? `The metric ${data.metric} has not been reported.`
              : "Nothing measures this loop: add an evaluation."}
          </Empty>
        )}
        <section
          aria-label="Table of values"
          className="overflow-x-auto rounded-2 border border-line bg-surface p-3"
        >
          <SweepTable sweep={data} variants={variants} drawn={drawn.length} />
          <p className="mt-2 text-muted text-xs">
            Places are by the last reading up to the step that all with readings have reached, as a
            mean over seeds; {data.better} is better. Start, end and spread are of finished runs;
            spread: standard deviation of the end.
          </p>
        </section>
      </div>
    </PageShell>
  );
}

function goesOn(data: Sweep | undefined): boolean {
  return data?.variants.some(({ runs }) => runs.some(({ state }) => !isFinal(state))) ?? false;
}
