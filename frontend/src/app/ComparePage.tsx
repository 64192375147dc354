import { GitCompareArrows } from "lucide-react";
import { useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { metricInfo, SHOWN_AT_FIRST } from "@/catalog/metrics";
import { FinalNumbers } from "@/features/compare/FinalNumbers";
import { AXES, type Axis, OverlayChart } from "@/features/compare/OverlayChart";
import { SamplesBeside } from "@/features/compare/SamplesBeside";
import { RunLegend, SpecDifferences } from "@/features/compare/SpecDifferences";
import { StageSplit } from "@/features/compare/StageSplit";
import { askedRuns, useCompared } from "@/features/compare/useCompared";
import { useServerCatalog } from "@/state/queries";
import { Button } from "@/ui/Button";
import { Segmented } from "@/ui/Segmented";
import { Empty, Failed, Loading } from "@/ui/States";
import { PageShell } from "./PageShell";

const LABELS: Record<Axis, { label: string; title: string }> = {
  progress: { label: "Steps", title: "By training step" },
  learned: { label: "Tokens", title: "By trained tokens" },
  time: { label: "Time", title: "By active time, without pauses" },
};

export function ComparePage() {
  const ids = askedRuns(useSearch());
  const [axis, setAxis] = useState<Axis>("progress");
  const [showsAll, setShowsAll] = useState(false);
  const [, navigate] = useLocation();
  const catalog = useServerCatalog().data ?? null;
  const { compared, curves, metrics, isLoading, error } = useCompared(ids, catalog, showsAll);
  const shown = showsAll ? metrics : metrics.slice(0, SHOWN_AT_FIRST);
  if (ids.length < 2) return <TooFew />;
  return (
    <PageShell
      title="Compare runs"
      isWide
      actions={
        <>
          <Segmented
            label="Curves by"
            value={axis}
            options={AXES.map((value) => ({ value, ...LABELS[value] }))}
            onChange={setAxis}
          />
          {metrics.length > SHOWN_AT_FIRST ? (
            <Button size="small" onClick={() => setShowsAll(!showsAll)}>
              {showsAll ? "Fewer metrics" : `All ${metrics.length} metrics`}
            </Button>
          ) : null}
        </>
      }
    >
      <RunLegend
        compared={compared}
        onRemove={(gone) => {
          const kept = ids.filter((id) => id !== gone).map(encodeURIComponent);
          navigate(`/runs/compare?runs=${kept.join(",")}`, { replace: true });
        }}
      />
      {error ? <Failed title="The runs could not be compared" error={error} /> : null}
      <div className="grid items-start gap-3 lg:grid-cols-[280px_minmax(0,1fr)]">
        {compared.length > 1 ? <SpecDifferences compared={compared} /> : null}
        <div className="flex min-w-0 flex-col gap-3">
          {isLoading ? <Loading label="Loading the curves" rows={4} /> : null}
          {!isLoading && metrics.length === 0 ? (
            <Empty title="No metrics yet">None of these runs has logged a metric.</Empty>
          ) : null}
          {catalog && compared.length > 1 ? (
            <FinalNumbers catalog={catalog} compared={compared} />
          ) : null}
          <div className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,360px),1fr))] gap-3">
            {catalog
              ? shown.map((metric) => (
                  <OverlayChart
                    key={metric}
                    metric={metric}
                    info={metricInfo(catalog, metric)}
                    axis={axis}
                    compared={compared}
                    curves={curves}
                  />
                ))
              : null}
          </div>
          {compared.length > 1 ? <SamplesBeside compared={compared} /> : null}
          <StageSplit compared={compared} curves={curves} />
        </div>
      </div>
    </PageShell>
  );
}

function TooFew() {
  return (
    <PageShell title="Compare runs">
      <Empty
        icon={<GitCompareArrows size={24} />}
        title="Choose at least two runs"
        action={
          <Link href="/runs" className="text-accent-text underline">
            All runs
          </Link>
        }
      >
        In the list of runs, select two to six and press Compare.
      </Empty>
    </PageShell>
  );
}
