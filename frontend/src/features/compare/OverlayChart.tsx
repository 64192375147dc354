import { useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import type { MetricInfo, RunCurves, RunSeries } from "@/api/types";
import { formatCount, formatMetric, formatSeconds, formatTicks } from "@/lib/format";
import { useResolvedTheme } from "@/state/theme";
import type { Compared } from "./useCompared";
import "uplot/dist/uPlot.min.css";
import { resolveColor } from "@/lib/colors";
import { plotAxes, roomy } from "@/lib/scale";

interface OverlayChartProps {
  metric: string;
  info: MetricInfo;
  axis: Axis;
  compared: readonly Compared[];
  curves: readonly RunCurves[];
}

const HEIGHT = 208;
const DASHES: readonly number[][] = [[], [8, 5], [2, 4]];

export function OverlayChart({ metric, info, axis, compared, curves }: OverlayChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const theme = useResolvedTheme();
  const drawn = useMemo(() => linesOf(metric, compared, curves), [metric, compared, curves]);
  const looks = JSON.stringify(drawn.map(({ look }) => look));
  const data = useMemo(
    () => overlay(drawn.map(({ series }) => lineOf(series, axis))),
    [drawn, axis],
  );
  const latest = useRef(data);
  const plot = useRef<uPlot | null>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colours
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const looked = JSON.parse(looks) as LineLook[];
    const made = overlayPlot(element, axis, looked, latest.current);
    plot.current = made;
    const resize = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.current = null;
      made.destroy();
    };
  }, [axis, looks, theme]);
  useEffect(() => {
    latest.current = data;
    plot.current?.setData(data);
  }, [data]);

  const summary = drawn.map(({ label, series }) => `${label} ${formatMetric(lastOf(series))}`);
  return (
    <figure
      aria-label={`${info.title}: ${summary.join(", ")}`}
      className="min-w-0 rounded-2 border border-line bg-surface p-3"
    >
      <figcaption className="truncate font-medium text-sm" title={metric}>
        {info.title}
      </figcaption>
      <ul className="mt-1 mb-1 flex min-h-5 flex-wrap gap-x-4">
        {drawn.map(({ label, look, series }) => (
          <li key={label} className="tabular flex min-w-0 items-center gap-1.5 text-xs">
            <svg width="16" height="2" aria-hidden="true" className="shrink-0">
              <line
                x2="16"
                y1="1"
                y2="1"
                stroke={look.color}
                strokeWidth="2"
                strokeDasharray={look.dash.join(" ")}
              />
            </svg>
            <span className="max-w-40 truncate text-muted" title={label}>
              {label}
            </span>
            {formatMetric(lastOf(series))}
          </li>
        ))}
      </ul>
      <div ref={host} style={{ height: HEIGHT }} aria-hidden="true" />
    </figure>
  );
}

interface DrawnLine {
  label: string;
  look: LineLook;
  series: RunSeries;
}

function linesOf(
  metric: string,
  compared: readonly Compared[],
  curves: readonly RunCurves[],
): DrawnLine[] {
  const all = curves.flatMap(({ run, series }) =>
    series.filter((curve) => curve.metric === metric).map((curve) => ({ run, curve })),
  );
  const nodes = [...new Set(all.map(({ curve }) => curve.node))];
  return compared.flatMap(({ run, color }) =>
    all
      .filter((one) => one.run === run.id)
      .map(({ curve }) => ({
        label: nodes.length > 1 ? `${run.name} · ${curve.node}` : run.name,
        look: { color, dash: DASHES[Math.min(nodes.indexOf(curve.node), 2)] ?? [] },
        series: curve,
      })),
  );
}

function lastOf(series: RunSeries): number | null {
  return series.last.at(-1) ?? null;
}

interface LineLook {
  color: string;
  dash: number[];
}

const CURSOR = "coloop.compare";

function overlayPlot(
  host: HTMLElement,
  axis: Axis,
  lines: readonly LineLook[],
  data: uPlot.AlignedData,
): uPlot {
  return new uPlot(
    {
      width: host.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: CURSOR, setSeries: false }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, min, max) => roomy(min, max) } },
      padding: [8, 16, 0, 0],
      axes: plotAxes({ size: 28, space: 72, values: (_, ticks) => xTexts(ticks, axis) }),
      series: [
        {},
        ...lines.map(({ color, dash }) => ({
          stroke: resolveColor(color),
          width: 1.75,
          dash,
          points: { show: (self: uPlot) => (self.data[0]?.length ?? 0) < 24, size: 4 },
        })),
      ],
    },
    data,
    host,
  );
}

function xTexts(ticks: readonly number[], axis: Axis): string[] {
  if (axis === "time") return ticks.map((tick) => formatSeconds(Math.round(tick)));
  return axis === "learned" ? ticks.map(formatCount) : formatTicks(ticks);
}

export const AXES = ["progress", "learned", "time"] as const;
export type Axis = (typeof AXES)[number];

/** A curve by what it is to be seen against. Without a clock or tokens its points have no place. */
export function lineOf(series: RunSeries, axis: Axis): uPlot.AlignedData {
  const xs: number[] = [];
  const ys: (number | null)[] = [];
  for (const [index, x] of placesOf(series, axis).entries()) {
    if (x === null || x === undefined) continue;
    // Two buckets at one place, as before the first token: the later one counts.
    const at = xs.at(-1) === x ? xs.length - 1 : xs.length;
    xs[at] = x;
    ys[at] = series.mean[index] ?? null;
  }
  return [xs, ys];
}

function placesOf(series: RunSeries, axis: Axis): readonly (number | null)[] {
  if (axis === "progress") return series.step;
  return axis === "time" ? series.seconds : series.tokens;
}

/** All on one axis; undefined where a line has no point, null where its value is no number. */
export function overlay(lines: uPlot.AlignedData[]): uPlot.AlignedData {
  return lines.length === 0 ? [[]] : uPlot.join(lines);
}
