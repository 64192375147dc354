import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Pin, PinOff } from "lucide-react";
import { memo, useMemo, useRef, useState } from "react";
import { fetchCheckpoints, fetchCurves } from "@/api/routes";
import { type ChartPlan, type CurveName, curveLabel } from "@/catalog/charts";
import { formatMetric } from "@/lib/format";
import { BUCKETS, bucketCurves, type Curve, curveKey } from "@/live/curves";
import { useLive } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { useCatalog } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { classes } from "@/ui/classes";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";
import { useOnScreen } from "@/ui/useOnScreen";
import { useParentId } from "./ParentLink";
import type { Zoom } from "./plot";
import { type Latest, type Reading, usePlot } from "./usePlot";

interface ChartPanelProps {
  live: LiveRun;
  chart: ChartPlan;
  colors: Readonly<Record<string, string>>;
  isWide: boolean;
  /** The part of the steps that all charts show; null: all steps. */
  zoom: Zoom | null;
  onZoom: (zoom: Zoom | null) => void;
}

const TALL = 190;
const LOW = 128;

export function ChartPanel({ live, chart, colors, isWide, zoom, onZoom }: ChartPanelProps) {
  const catalog = useCatalog();
  const smoothing = usePreferences((state) => state.smoothing);
  const pinned = usePreferences((state) => state.pinnedCharts);
  const isPinned = pinned.includes(chart.name);
  const kept = useKept();
  const height = isWide ? TALL : LOW;
  const ink = chart.curves.map(({ node }) => colors[node] ?? "var(--muted)");
  const host = useRef<HTMLDivElement>(null);
  const isOnScreen = useOnScreen(host, "160px");
  const [cursor, setCursor] = useState<Reading | null>(null);
  const [latest, setLatest] = useState<readonly Latest[]>([]);
  const fetched = useCurves(live, chart.curves, zoom, isOnScreen);
  const parent = useParentCurves(chart.curves, isOnScreen);
  usePlot(host, {
    live,
    curves: chart.curves,
    fetched,
    parent,
    colors: ink,
    smoothing,
    kept,
    height,
    isOnScreen,
    onCursor: setCursor,
    onLatest: setLatest,
    zoom,
    onZoom,
  });
  const legend = chart.curves.map((curve, place) => ({
    key: curveKey(curve),
    label: curveLabel(catalog, curve, chart.curves),
    color: ink[place] ?? "",
    isDashed: isSecond(chart, place),
    value: cursor ? cursor.values[place] : latest[place]?.value,
    step: cursor ? cursor.step : latest[place]?.step,
  }));
  const summary = legend.map(
    ({ label }, place) => `${label} ${formatMetric(latest[place]?.value)}`,
  );
  const { info } = chart;
  const step = (
    <span className="tabular shrink-0 whitespace-nowrap pt-0.5 text-muted text-xs">
      {typeof cursor?.step === "number" ? `step ${cursor.step}` : stepText(latest)}
    </span>
  );
  return (
    <figure
      aria-label={`${info.title}: ${summary.join(", ")}`}
      className={classes(
        "group min-w-0 rounded-3 border border-line bg-surface px-3 pt-2 pb-1",
        isWide && "col-span-full",
      )}
    >
      <figcaption className="flex min-h-6 flex-wrap items-start gap-x-2">
        <Tooltip
          text={
            info.help ? (
              <span>
                <RichText text={info.help} /> {info.expect ? <RichText text={info.expect} /> : null}
              </span>
            ) : null
          }
        >
          <b className="min-w-0 truncate text-sm" title={chart.name}>
            {info.title}
          </b>
        </Tooltip>
        {isWide ? step : <span className="flex-1" />}
        <button
          type="button"
          aria-label={isPinned ? `Unpin ${info.title}` : `Pin ${info.title}`}
          aria-pressed={isPinned}
          className={classes(
            "mt-0.5 rounded-1 text-muted opacity-0 hover:text-text focus-visible:opacity-100 group-hover:opacity-100",
            isPinned && "opacity-100",
          )}
          onClick={() =>
            setPreferences({
              pinnedCharts: isPinned
                ? pinned.filter((name) => name !== chart.name)
                : [...pinned, chart.name],
            })
          }
        >
          {isPinned ? <PinOff size={13} /> : <Pin size={13} />}
        </button>
        {isWide ? <Legend items={legend} /> : null}
      </figcaption>
      {isWide ? null : (
        <div className="flex min-h-5 flex-wrap items-start gap-x-2">
          {step}
          <Legend items={legend} />
        </div>
      )}
      <div ref={host} style={{ height }} aria-hidden="true" />
    </figure>
  );
}

function stepText(latest: readonly Latest[]): string {
  const steps = new Set(latest.flatMap(({ step }) => (step === null ? [] : [step])));
  if (steps.size === 0) return "";
  return steps.size === 1 ? `step ${Math.max(...steps)}` : `up to step ${Math.max(...steps)}`;
}

interface LegendItem {
  key: string;
  label: string;
  color: string;
  isDashed: boolean;
  value: number | null | undefined;
  step: number | null | undefined;
}

function Legend({ items }: { items: readonly LegendItem[] }) {
  return (
    <ul className="flex min-w-0 grow flex-wrap justify-end gap-x-3 gap-y-0.5">
      {items.map(({ key, ...item }) => (
        <Entry key={key} {...item} />
      ))}
    </ul>
  );
}

const Entry = memo(function Entry(props: Omit<LegendItem, "key">) {
  const { label, color, isDashed, value, step } = props;
  return (
    <li
      title={typeof step === "number" ? `${label}, step ${step}` : label}
      className="flex min-w-0 items-center gap-1.5 text-xs"
    >
      <svg width="14" height="4" aria-hidden="true" className="shrink-0">
        <line
          x1="0"
          x2="14"
          y1="2"
          y2="2"
          stroke={color}
          strokeWidth="3"
          strokeDasharray={isDashed ? "4 3" : undefined}
        />
      </svg>
      <span className="max-w-36 truncate text-muted">{label}</span>
      <b className="tabular min-w-9 whitespace-nowrap text-right font-medium">
        {formatMetric(value)}
      </b>
    </li>
  );
});

function isSecond({ curves }: Pick<ChartPlan, "curves">, place: number): boolean {
  const node = curves[place]?.node;
  return curves.slice(0, place).some((curve) => curve.node === node);
}

/** Steps of the checkpoints that are kept, asked anew when one is written; null: not known. */
function useKept(): ReadonlySet<number> | null {
  const id = useLive("status", (live) => live.id, "");
  const written = useLive("series", (live) => live.state.checkpoints.length, 0);
  const { data } = useQuery({
    queryKey: ["run", id, "checkpoints", written],
    queryFn: () => fetchCheckpoints(id),
    enabled: id !== "" && written > 0,
    placeholderData: keepPreviousData,
  });
  return useMemo(() => (data ? new Set(data.steps) : null), [data]);
}

/** The same curves of the run that this one was forked from, up to its end; null: it is no fork. */
function useParentCurves(
  curves: readonly CurveName[],
  isWanted: boolean,
): ReadonlyMap<string, Curve> | null {
  const id = useParentId();
  const metrics = curves.map(curveKey);
  const { data } = useQuery({
    queryKey: ["run", id, "curves", metrics, "of a parent"],
    queryFn: ({ signal }) => fetchCurves(id ?? "", { metrics, buckets: BUCKETS }, signal),
    enabled: isWanted && id !== null,
    staleTime: 60_000,
    retry: false,
  });
  return useMemo(() => (data ? bucketCurves(data.series, data.width) : null), [data]);
}

/** New points come from the stream; after so many steps buckets take their place. */
const STEPS_BETWEEN = 500;

/** What the service has of these curves; null where all of it is in the page already. */
function useCurves(
  live: LiveRun,
  curves: readonly CurveName[],
  zoom: Zoom | null,
  isWanted: boolean,
): ReadonlyMap<string, Curve> | null {
  const isWhole = useLive("status", () => live.state.isWhole, true);
  const epoch = useLive("series", () => Math.floor((live.state.step ?? 0) / STEPS_BETWEEN), 0);
  const metrics = curves.map(curveKey);
  const range = zoom ? { from: Math.floor(zoom.min), to: Math.ceil(zoom.max) } : {};
  const { data } = useQuery({
    queryKey: ["run", live.id, "curves", metrics, range, epoch],
    queryFn: ({ signal }) => fetchCurves(live.id, { metrics, buckets: BUCKETS, ...range }, signal),
    enabled: isWanted && !isWhole,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
  });
  return useMemo(
    () => (isWhole || !data ? null : bucketCurves(data.series, data.width)),
    [isWhole, data],
  );
}
