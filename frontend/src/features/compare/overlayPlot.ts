/** uPlot for a few runs on one chart: one colour a run, dashes for its further nodes, the cursor shared by all. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { resolveColor } from "@/lib/colors";
import { formatCount, formatSeconds, formatTicks } from "@/lib/format";
import { axisWidth, roomy } from "@/lib/scale";
import type { Axis, Overlay } from "./overlay";

export interface LineLook {
  color: string;
  dash: number[];
}

const CURSOR = "coloop.compare";
const FONT = 12;

export interface OverlayPlot {
  setData: (data: Overlay) => void;
  setSize: (width: number, height: number) => void;
  destroy: () => void;
}

export function createOverlayPlot(
  host: HTMLElement,
  options: { width: number; height: number; axis: Axis; lines: readonly LineLook[] },
): OverlayPlot {
  const ink = resolveColor("var(--muted)");
  const grid = resolveColor("var(--line)");
  const font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  const plot = new uPlot(
    {
      width: options.width,
      height: options.height,
      legend: { show: false },
      cursor: { sync: { key: CURSOR, setSeries: false }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, min, max) => roomy(min, max) } },
      padding: [8, 16, 0, 0],
      axes: [
        {
          stroke: ink,
          grid: { show: false },
          ticks: { stroke: grid, size: 4 },
          font,
          size: 28,
          space: 72,
          values: (_, ticks) => xTexts(ticks, options.axis),
        },
        {
          stroke: ink,
          grid: { stroke: grid, width: 1 },
          ticks: { show: false },
          font,
          size: (_, texts) => axisWidth(texts),
          values: (_, ticks) => formatTicks(ticks),
        },
      ],
      series: [
        {},
        ...options.lines.map(({ color, dash }) => ({
          stroke: resolveColor(color),
          width: 1.75,
          dash,
          points: { show: (self: uPlot) => (self.data[0]?.length ?? 0) < 24, size: 4 },
        })),
      ],
    },
    [[], ...options.lines.map(() => [])],
    host,
  );
  return {
    setData: ({ xs, lines }) => plot.setData([xs, ...lines] as uPlot.AlignedData),
    setSize: (width, height) => plot.setSize({ width, height }),
    destroy: () => plot.destroy(),
  };
}

function xTexts(ticks: readonly number[], axis: Axis): string[] {
  if (axis === "time") return ticks.map((tick) => formatSeconds(Math.round(tick)));
  return axis === "learned" ? ticks.map(formatCount) : formatTicks(ticks);
}
