import { useQuery } from "@tanstack/react-query";
import { ChartLine } from "lucide-react";
import { useMemo, useState } from "react";
import { fetchCheckpoints, fetchCurves } from "@/api/routes";
import { type ChartPlan, planCharts } from "@/catalog/charts";
import { teachingPorts } from "@/document/teaching";
import { formatPlural } from "@/lib/format";
import { useLive } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { useRecord } from "@/live/recordContext";
import { useCatalog, useChartColors, useDocument } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { Button } from "@/ui/Button";
import { Empty, Loading } from "@/ui/States";
import { ChartPanel } from "./ChartPanel";
import { ChartsHead } from "./ChartsHead";
import type { Zoom } from "./zoom";

const TALL = 190;
const LOW = 128;

/** The curves that the loop's algorithms are judged by, and any other that is asked for; one cursor for all. */
export function ChartsPanel() {
  const live = useRecord();
  const catalog = useCatalog();
  const smoothing = usePreferences((state) => state.smoothing);
  const pinned = usePreferences((state) => state.pinnedCharts);
  const set = usePreferences((state) => state.set);
  const [filter, setFilter] = useState("");
  const [showsAll, setShowsAll] = useState(false);
  const [zoom, setZoom] = useState<Zoom | null>(null);
  const known = useKnownCurves(live);
  const kept = useKept();
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
          <Empty icon={<ChartLine size={24} />} title="No numbers yet">
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
              smoothing={smoothing}
              kept={kept}
              height={place === 0 ? TALL : LOW}
              isWide={place === 0}
              zoom={zoom}
              onZoom={setZoom}
              isPinned={pinned.includes(chart.name)}
              onPin={(isPinned) =>
                set({
                  pinnedCharts: isPinned
                    ? [...pinned, chart.name]
                    : pinned.filter((name) => name !== chart.name),
                })
              }
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
    return charts.filter(({ name, info, curves }) =>
      `${name} ${info.title} ${curves.map(({ metric }) => metric).join(" ")}`
        .toLowerCase()
        .includes(words),
    );
  }
  return charts.filter(({ name, isMain }) => isMain || showsAll || pinned.includes(name));
}

/** Steps of the checkpoints that are kept, asked anew when one is written; null: not known. */
function useKept(): ReadonlySet<number> | null {
  const id = useLive("status", (live) => live.id, "");
  const written = useLive("series", (live) => live.state.checkpoints.length, 0);
  const { data } = useQuery({
    queryKey: ["run", id, "checkpoints", written],
    queryFn: () => fetchCheckpoints(id),
    enabled: id !== "" && written > 0,
    placeholderData: (before) => before,
  });
  return useMemo(() => (data ? new Set(data.steps) : null), [data]);
}

const REFRESH = 30_000;

/** By metric, the nodes that ever told it. Changes only when one is heard of for the first time. */
function useKnownCurves(live: LiveRun | null): ReadonlyMap<string, readonly string[]> {
  const isWhole = useLive("status", () => live?.isWhole ?? true, true);
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
