import { useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { resolveColor } from "@/lib/colors";
import { formatMetric, formatTicks } from "@/lib/format";
import { plotAxes, roomy, WHOLE_STEPS } from "@/lib/scale";
import { useResolvedTheme } from "@/state/theme";
import { armColor, type Band, bandOf, type DrawnGroup, shownRuns } from "./arms";

interface ArmsChartProps {
  title: string;
  /** The phase in which the groups begin to differ; null: the whole run. */
  begins: string | null;
  groups: readonly DrawnGroup[];
}

const HEIGHT = 320;
const OPACITY = "2e";

/** Mean and spread of each group over its seeds. */
export function ArmsChart({ title, begins, groups }: ArmsChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const theme = useResolvedTheme();
  const drawn = useMemo(
    () =>
      groups
        .map((group, place) => ({ group, color: armColor(place), band: bandOf(shownRuns(group)) }))
        .filter(({ band }) => band.steps.length > 0),
    [groups],
  );
  const looks = JSON.stringify(drawn.map(({ color }) => color));
  const data = useMemo(() => dataOf(drawn.map(({ band }) => band)), [drawn]);
  const latest = useRef(data);
  const plot = useRef<uPlot | null>(null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colours
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const made = bandPlot(element, JSON.parse(looks) as string[], latest.current);
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
  }, [looks, theme]);
  useEffect(() => {
    latest.current = data;
    plot.current?.setData(data);
  }, [data]);

  const summary = drawn.map(({ group, band }) => `${group.title} ${said(band)}`);
  const since = begins === null ? "the start" : `the start of phase ${begins}`;
  return (
    <figure
      aria-label={`${title}, mean and spread over seeds: ${summary.join(", ")}`}
      className="min-w-0 rounded-2 border border-line bg-surface p-3"
    >
      <figcaption className="flex flex-wrap items-baseline gap-x-3 text-sm">
        <span className="font-medium">{title}</span>
        <span className="text-muted text-xs">
          Mean over seeds, band of one standard deviation, by steps since {since}
        </span>
      </figcaption>
      <ul className="mt-1 mb-1 flex min-h-5 flex-wrap gap-x-4">
        {drawn.map(({ group, color, band }) => (
          <li key={group.key} className="tabular flex items-center gap-1.5 text-xs">
            <span
              aria-hidden="true"
              className="h-0.5 w-4 rounded-full"
              style={{ background: color }}
            />
            <span className="text-muted">{group.title}</span>
            {said(band)}
          </li>
        ))}
      </ul>
      <div ref={host} style={{ height: HEIGHT }} aria-hidden="true" />
    </figure>
  );
}

function said(band: Band): string {
  const [mean, high] = [band.mean.at(-1), band.high.at(-1)];
  const spread = mean === undefined || high === undefined || high === null ? null : high - mean;
  return formatMetric(mean) + (spread === null ? "" : ` ± ${formatMetric(spread)}`);
}

/** Mean, high and low of each arm on one axis. */
export function dataOf(bands: readonly Band[]): uPlot.AlignedData {
  if (bands.length === 0) return [[]];
  return uPlot.join(bands.map(({ steps, mean, high, low }) => [steps, mean, high, low]));
}

function bandPlot(host: HTMLElement, colors: readonly string[], data: uPlot.AlignedData): uPlot {
  return new uPlot(
    {
      width: host.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, min, max) => roomy(min, max) } },
      padding: [8, 16, 0, 0],
      axes: plotAxes({
        incrs: WHOLE_STEPS,
        size: 28,
        space: 72,
        values: (_, ticks) => formatTicks(ticks),
      }),
      series: [
        {},
        ...colors.flatMap((color) => [
          { stroke: resolveColor(color), width: 2, spanGaps: true, points: { show: false } },
          { width: 0, spanGaps: true, points: { show: false } },
          { width: 0, spanGaps: true, points: { show: false } },
        ]),
      ],
      bands: colors.map((color, place) => ({
        series: [3 * place + 2, 3 * place + 3] as [number, number],
        fill: resolveColor(color) + OPACITY,
      })),
    },
    data,
    host,
  );
}
