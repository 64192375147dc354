import { ChartLine } from "lucide-react";
import { useState } from "react";
import { metricInfo, orderMetrics, SHOWN_AT_FIRST } from "@/catalog/metrics";
import { useCatalog, useNodeColors } from "@/document/context";
import { useLive, useLiveRun } from "@/live/hooks";
import { usePreferences } from "@/session/preferences";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Empty, Loading } from "@/ui/States";
import { ChartPanel } from "./ChartPanel";

/** All metrics of the run, a chart each, with one cursor for all. */
export function ChartsPanel() {
  const live = useLiveRun();
  const catalog = useCatalog();
  const smoothing = usePreferences((state) => state.smoothing);
  const set = usePreferences((state) => state.set);
  const colors = useNodeColors();
  const [filter, setFilter] = useState("");
  const [showsAll, setShowsAll] = useState(false);
  // Changes only when a metric or a node is heard of for the first time.
  const known = useLive(
    "series",
    (run) =>
      [...run.state.series]
        .map(([name, nodes]) => `${name}:${[...nodes.keys()].join(",")}`)
        .join(";"),
    "",
  );
  const isLoading = useLive("status", (run) => run.connection === "loading", false);
  if (!live) return null;
  if (known === "") {
    if (isLoading) return <Loading label="Loading the curves" rows={4} />;
    return (
      <Empty icon={<ChartLine size={24} />} title="No numbers yet">
        Curves appear with the first step that learns or the first evaluation.
      </Empty>
    );
  }
  const nodesOf = new Map(
    known.split(";").map((part) => {
      const at = part.lastIndexOf(":");
      return [part.slice(0, at), part.slice(at + 1).split(",")] as const;
    }),
  );
  const names = orderMetrics(catalog, nodesOf.keys());
  const found = names.filter((name) =>
    `${name} ${metricInfo(catalog, name).title}`.toLowerCase().includes(filter.toLowerCase()),
  );
  const shown = showsAll || filter ? found : found.slice(0, SHOWN_AT_FIRST);

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex h-10 shrink-0 items-center gap-3 px-3">
        <input
          role="searchbox"
          aria-label="Filter metrics"
          placeholder="Filter metrics"
          className={`${WIDE_CONTROL} max-w-56`}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <label className="flex items-center gap-2 text-muted text-xs">
          Smoothing
          <input
            type="range"
            min={0}
            max={0.99}
            step={0.01}
            value={smoothing}
            className="w-24 accent-(--accent)"
            onChange={(event) => set({ smoothing: Number(event.target.value) })}
          />
        </label>
        <span className="flex-1" />
        {found.length > SHOWN_AT_FIRST && !filter ? (
          <Button size="small" look="quiet" onClick={() => setShowsAll(!showsAll)}>
            {showsAll ? "Fewer" : `All ${found.length}`}
          </Button>
        ) : null}
      </div>
      <div
        tabIndex={0}
        role="group"
        aria-label="Charts"
        className="grid min-h-0 flex-1 auto-rows-min grid-cols-[repeat(auto-fill,minmax(288px,1fr))] gap-2 overflow-y-auto px-3 pb-3"
      >
        {shown.map((name) => (
          <ChartPanel
            key={name}
            live={live}
            metric={name}
            nodes={nodesOf.get(name) ?? []}
            colors={colors}
            info={metricInfo(catalog, name)}
            smoothing={smoothing}
          />
        ))}
        {shown.length === 0 ? (
          <p className="text-muted text-sm">No metric matches “{filter}”.</p>
        ) : null}
      </div>
    </div>
  );
}
