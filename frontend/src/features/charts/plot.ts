/** uPlot behind a small surface: curves by step with a shared cursor and marks where phases change. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { resolveColor } from "@/lib/colors";
import { formatTick } from "@/lib/format";
import type { ChartData } from "./chartData";
import { type Zoom, zoomOf } from "./zoom";

export interface PhaseLine {
  step: number;
  name: string;
}

export interface PlotOptions {
  width: number;
  height: number;
  colors: readonly string[];
  /** The range that is shown at first; null for all steps. */
  zoom: Zoom | null;
  onCursor: (values: (number | null)[] | null, step: number | null) => void;
}

export interface Plot {
  setData: (data: ChartData, phases: readonly PhaseLine[]) => void;
  setSize: (width: number, height: number) => void;
  /** The range that was dragged, null while all steps are shown. */
  zoom: () => Zoom | null;
  destroy: () => void;
}

const CURSOR = "coloop.run";
/** Distances of the marks below a chart: there is no half step. */
export const WHOLE_STEPS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((times) => times * 10 ** power),
).flat();

export function createPlot(host: HTMLElement, options: PlotOptions): Plot {
  let phases: readonly PhaseLine[] = [];
  const ink = resolveColor("var(--muted)");
  const grid = resolveColor("var(--line)");
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;

  const plot = new uPlot(
    {
      width: options.width,
      height: options.height,
      legend: { show: false },
      cursor: {
        sync: { key: CURSOR, setSeries: false },
        drag: { x: true, y: false },
        points: { size: 6 },
      },
      scales: { x: { time: false }, y: { range: (_, min, max) => roomy(min, max) } },
      padding: [14, 18, 0, 0],
      axes: [
        {
          stroke: ink,
          grid: { show: false },
          ticks: { stroke: grid, size: 4 },
          incrs: WHOLE_STEPS,
          font,
          size: 26,
          space: 64,
        },
        {
          stroke: ink,
          grid: { stroke: grid, width: 1 },
          ticks: { show: false },
          font,
          size: 52,
          space: 32,
          values: (_, ticks) => ticks.map((tick) => formatTick(tick)),
        },
      ],
      series: [
        {},
        ...options.colors.map((color) => ({
          stroke: resolveColor(color),
          width: 1.75,
          spanGaps: true,
          points: { show: (self: uPlot) => (self.data[0]?.length ?? 0) < 40, size: 4 },
        })),
      ],
      hooks: {
        draw: [(self) => drawPhases(self, phases, ink, font)],
        setCursor: [
          (self) => {
            const index = self.cursor.idx;
            if (index === null || index === undefined) options.onCursor(null, null);
            else {
              const values = self.data
                .slice(1)
                .map((line) => (line as (number | null)[])[index] ?? null);
              options.onCursor(values, self.data[0]?.[index] ?? null);
            }
          },
        ],
      },
    },
    [[], ...options.colors.map(() => [])],
    host,
  );

  let wanted = options.zoom;
  const zoom = () => wanted ?? zoomOf(plot.data[0], plot.scales.x);
  return {
    setData: (data, marks) => {
      phases = marks;
      dashDoubles(plot, data.values);
      const kept = zoom();
      wanted = null;
      plot.setData([data.steps, ...data.values] as uPlot.AlignedData, kept === null);
      if (kept) plot.setScale("x", kept);
    },
    zoom,
    setSize: (width, height) => plot.setSize({ width, height }),
    destroy: () => plot.destroy(),
  };
}

/** A little air above and below; a flat line lies in the middle, zero at the foot. */
function roomy(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  if (min === max)
    return min === 0 ? [0, 1] : [min - Math.abs(min) * 0.2, max + Math.abs(max) * 0.2];
  const air = (max - min) * 0.06;
  return [min >= 0 && min < air ? 0 : min - air, max + air];
}

const DASH = [7, 7];

/** A curve that lies on an earlier one is dashed, so that both are seen. */
function dashDoubles(plot: uPlot, lines: readonly (number | null)[][]): void {
  for (const [index, line] of lines.entries()) {
    const isDouble = lines.slice(0, index).some((other) => liesOn(line, other));
    const series = plot.series[index + 1];
    if (series) series.dash = isDouble ? DASH : [];
  }
}

function liesOn(line: readonly (number | null)[], other: readonly (number | null)[]): boolean {
  let shared = 0;
  for (const [index, value] of line.entries()) {
    const beside = other[index];
    if (value === null || beside === null || beside === undefined) continue;
    if (Math.abs(value - beside) > 1e-9 * Math.max(1, Math.abs(value))) return false;
    shared += 1;
  }
  return shared > 1;
}

function drawPhases(plot: uPlot, phases: readonly PhaseLine[], ink: string, font: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = font.replace("11px", `${10 * devicePixelRatio}px`);
  ctx.fillStyle = ink;
  ctx.strokeStyle = ink;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  let free = Number.NEGATIVE_INFINITY;
  for (const { step, name } of phases) {
    const x = Math.round(plot.valToPos(step, "x", true));
    if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) continue;
    ctx.globalAlpha = 0.6;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (x < free) continue;
    ctx.fillText(name, x + 3, bbox.top);
    free = x + ctx.measureText(name).width + 10 * devicePixelRatio;
  }
  ctx.restore();
}
