import { useQuery } from "@tanstack/react-query";
import { ChartLine, Search, X } from "lucide-react";
import { useMemo, useState } from "react";
import { fetchCurves } from "@/api/routes";
import type { Json } from "@/api/types";
import { type ChartPlan, planCharts } from "@/catalog/charts";
import { teachingPorts } from "@/document/canConnect";
import { formatPlural } from "@/lib/format";
import { isObject } from "@/lib/paths";
import { useLive, useRecord } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { useCatalog, useChartColors, useDocument } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { Empty, Loading } from "@/ui/States";
import { ChartPanel } from "./ChartPanel";
import { ParentLink, SweepLink } from "./ParentLink";
import { type Zoom, zoomText } from "./plot";

export function ChartsPanel() {
  const live = useRecord();
  const catalog = useCatalog();
  const pinned = usePreferences((state) => state.pinnedCharts);
  const [filter, setFilter] = useState("");
  const [showsAll, setShowsAll] = useState(false);
  const [zoom, setZoom] = useState<Zoom | null>(null);
  const known = useKnownCurves(live);
  const ports = useDocument((state) =>
    teachingPorts(catalog, state.document)
      .map(({ port }) => port)
      .join(),
  );
  const isLoading = useLive("status", (run) => run.connection === "loading", false);
  const charts = useMemo(
    () => planCharts(catalog, known, new Set(ports.split(","))),
    [catalog, known, ports],
  );
  const nodes = useMemo(
    () => [...new Set(charts.flatMap(({ curves }) => curves.map(({ node }) => node)))],
    [charts],
  );
  const colors = useChartColors(nodes);
  if (!live) return null;
  const shown = chosenCharts(charts, { filter, showsAll, pinned });
  const more = charts.length - chosenCharts(charts, { filter: "", showsAll: false, pinned }).length;
  return (
    <section aria-label="Charts" className="flex h-full min-h-0 flex-col">
      <ChartsHead
        filter={filter}
        onFilter={setFilter}
        zoom={zoom}
        onAllSteps={() => setZoom(null)}
      />
      {known.size === 0 ? (
        isLoading ? (
          <Loading label="Loading the curves" rows={4} />
        ) : (
          <Empty icon={<ChartLine size={24} />} title="No metrics yet">
            Curves appear after the first training step or evaluation.
          </Empty>
        )
      ) : (
        <div
          tabIndex={0}
          role="group"
          aria-label="All charts"
          className="grid min-h-0 flex-1 auto-rows-min grid-cols-[repeat(auto-fill,minmax(200px,1fr))] gap-2 overflow-y-auto px-3 pb-3"
        >
          {shown.map((chart, place) => (
            <ChartPanel
              key={chart.name}
              live={live}
              chart={chart}
              colors={colors}
              isWide={place === 0}
              zoom={zoom}
              onZoom={setZoom}
            />
          ))}
          {shown.length === 0 ? (
            <p className="text-muted text-sm">No metric matches “{filter}”.</p>
          ) : null}
          {more > 0 && filter === "" ? (
            <Button
              size="small"
              look="quiet"
              className="col-span-full justify-self-start"
              onClick={() => setShowsAll(!showsAll)}
            >
              {showsAll ? "Fewer charts" : formatPlural(more, "more chart")}
            </Button>
          ) : null}
        </div>
      )}
    </section>
  );
}

interface Choice {
  filter: string;
  showsAll: boolean;
  pinned: readonly string[];
}

function chosenCharts(
  charts: readonly ChartPlan[],
  { filter, showsAll, pinned }: Choice,
): ChartPlan[] {
  const words = filter.trim().toLowerCase();
  if (words !== "") {
    const textOf = ({ name, info, curves }: ChartPlan) =>
      [name, info.title, ...curves.map(({ metric }) => metric)].join(" ").toLowerCase();
    return charts.filter((chart) => textOf(chart).includes(words));
  }
  return charts.filter(({ name, isMain }) => isMain || showsAll || pinned.includes(name));
}

const REFRESH = 30_000;

/** By metric, the nodes that ever told it. Changes only when one is heard of for the first time. */
function useKnownCurves(live: LiveRun | null): ReadonlyMap<string, readonly string[]> {
  const isWhole = useLive("status", () => live?.state.isWhole ?? true, true);
  const isEnded = useLive("status", () => live?.connection === "ended", false);
  const told = useLive("series", () => (live ? namesOf(live) : ""), "");
  const all = useQuery({
    queryKey: ["run", live?.id, "curves"],
    queryFn: ({ signal }) => fetchCurves(live?.id ?? "", {}, signal),
    enabled: live !== null && !isWhole,
    refetchInterval: isEnded ? false : REFRESH,
    select: (found) => found.curves.map(({ node, metric }) => `${metric}\n${node}`).join("\t"),
  });
  const before = all.data ?? "";
  return useMemo(() => {
    const known = new Map<string, string[]>();
    for (const line of new Set([...before.split("\t"), ...told.split("\t")])) {
      const [metric, node] = line.split("\n");
      if (metric && node) known.set(metric, [...(known.get(metric) ?? []), node]);
    }
    return known;
  }, [before, told]);
}

function namesOf(live: LiveRun): string {
  const { series } = live.state;
  return [...series]
    .flatMap(([metric, nodes]) => [...nodes.keys()].map((node) => `${metric}\n${node}`))
    .join("\t");
}

interface ChartsHeadProps {
  filter: string;
  onFilter: (filter: string) => void;
  zoom: Zoom | null;
  onAllSteps: () => void;
}

function ChartsHead({ filter, onFilter, zoom, onAllSteps }: ChartsHeadProps) {
  const smoothing = usePreferences((state) => state.smoothing);
  const chosenFor = useChosenFor();
  return (
    <div className="@container flex min-h-10 shrink-0 flex-wrap items-center gap-x-2 gap-y-1 px-3 py-1.5">
      <h2 className="font-semibold text-sm">Charts</h2>
      {chosenFor ? (
        <Badge tone="accent" className="max-w-full text-xs" title={`Chosen for ${chosenFor}`}>
          <span className="truncate">for {chosenFor}</span>
        </Badge>
      ) : null}
      <ParentLink />
      <SweepLink />
      {zoom ? (
        <Button size="small" title="Show all steps again, including new ones" onClick={onAllSteps}>
          {zoomText(zoom)}
          <X size={12} aria-hidden="true" />
        </Button>
      ) : null}
      <span className="flex flex-1 items-center justify-end gap-2">
        <label className="relative flex max-w-48 flex-1 items-center">
          <Search size={13} className="absolute left-2 text-muted" aria-hidden="true" />
          <input
            role="searchbox"
            aria-label="Filter metrics"
            placeholder="metric"
            className={`${CONTROL} w-full min-w-20 pl-7`}
            value={filter}
            onChange={(event) => onFilter(event.target.value)}
          />
        </label>
        <label className="flex items-center gap-2 text-muted text-xs">
          <span>
            smooth{" "}
            <span className="tabular hidden w-7 text-text @md:inline-block">
              {smoothing.toFixed(2)}
            </span>
          </span>
          <input
            type="range"
            aria-label="Smoothing"
            title={`Smoothing ${smoothing.toFixed(2)}`}
            min={0}
            max={0.99}
            step={0.01}
            value={smoothing}
            className="w-10 accent-(--accent)"
            onChange={(event) => setPreferences({ smoothing: Number(event.target.value) })}
          />
        </label>
      </span>
    </div>
  );
}

function useChosenFor(): string {
  const catalog = useCatalog();
  return useDocument(({ document }) => {
    const learners = new Set(teachingPorts(catalog, document).map(({ node }) => node));
    const known = Object.values(catalog.algorithms).flat();
    const counts = new Map<string, number>();
    for (const id of learners) {
      const algorithm = document.nodes[id]?.algorithm;
      for (const name of new Set(namesIn(algorithm))) {
        const title = known.find((one) => one.name === name)?.title ?? name;
        counts.set(title, (counts.get(title) ?? 0) + 1);
      }
    }
    return [...counts].map(([title, n]) => (n > 1 ? `${title} × ${n}` : title)).join(", ");
  });
}

function namesIn(value: Json | undefined): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (!isObject(value)) return [];
  return typeof value.name === "string" ? [value.name] : Object.values(value).flatMap(namesIn);
}
