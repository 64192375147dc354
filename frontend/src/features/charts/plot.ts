import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { resolveColor } from "@/lib/colors";
import { plotAxes, roomy, WHOLE_STEPS } from "@/lib/scale";
import type { Mark } from "@/live/marks";
import type { ChartData } from "./chartData";

/** The part of the steps that all charts show. */
export interface Zoom {
  min: number;
  max: number;
}

export function zoomText({ min, max }: Zoom): string {
  return `steps ${Math.ceil(min)} to ${Math.floor(max)}`;
}

interface PlotOptions {
  width: number;
  height: number;
  colors: readonly string[];
  /** Curves that are dashed wherever they lie. */
  dashed?: readonly boolean[];
  zoom: Zoom | null;
  onCursor: (values: (number | null)[] | null, step: number | null) => void;
  onZoom?: (zoom: Zoom | null) => void;
}

export type Plot = ReturnType<typeof createPlot>;

const CURSOR = "coloop.run";
const ABOVE = 18;
export function createPlot(host: HTMLElement, options: PlotOptions) {
  let marks: readonly Mark[] = [];
  let now: number | null = null;
  // Never read back from uPlot: it commits scales later, and others would then seem to have been chosen.
  let { zoom } = options;
  let isDraggedHere = false;
  const dashed = options.dashed ?? [];
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;

  const plot = new uPlot(
    {
      width: options.width,
      height: options.height,
      legend: { show: false },
      cursor: {
        sync: { key: CURSOR, setSeries: false },
        drag: { x: true, y: false, setScale: false },
        bind: {
          mousedown: (_self, _target, handler) => (event) => {
            isDraggedHere = true;
            handler(event);
            return null;
          },
          dblclick: () => () => {
            options.onZoom?.(null);
            return null;
          },
        },
        points: { size: 6 },
      },
      scales: { x: { time: false }, y: { range: (_, min, max) => roomy(min, max) } },
      padding: [ABOVE, 14, 0, 0],
      axes: plotAxes({ incrs: WHOLE_STEPS, size: 26, space: 64 }, { space: 22 }),
      series: [
        {},
        ...options.colors.map((color) => ({
          stroke: resolveColor(color),
          width: 1.75,
          spanGaps: true,
          points: { show: (self: uPlot) => (self.data[0]?.length ?? 0) < 40, size: 4 },
        })),
        ...options.colors.map((color) => ({
          stroke: resolveColor(color),
          width: 1,
          alpha: 0.3,
          spanGaps: true,
          points: { show: false },
        })),
        ...options.colors.map((color) => ({
          stroke: resolveColor(color),
          width: 1.5,
          alpha: 0.55,
          dash: DOTS,
          spanGaps: true,
          points: { show: false },
        })),
      ],
      hooks: {
        draw: [
          (self) => {
            drawMarks(self, marks, font);
            drawNow(self, now);
          },
        ],
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width === 0) return;
            const from = self.posToVal(left, "x");
            const to = self.posToVal(left + width, "x");
            self.setSelect({ ...self.select, left: 0, width: 0 }, false);
            if (isDraggedHere) options.onZoom?.({ min: from, max: to });
            isDraggedHere = false;
          },
        ],
        setCursor: [
          ({ cursor: { idx: index }, data: [steps, ...lines] }) => {
            if (typeof index !== "number") return options.onCursor(null, null);
            const shown = lines.slice(0, options.colors.length);
            const values = shown.map((line) => line[index] ?? null);
            options.onCursor(values, steps?.[index] ?? null);
          },
        ],
      },
    },
    [[], ...Array.from({ length: 3 * options.colors.length }, () => [])],
    host,
  );

  const show = (data: uPlot.AlignedData) => {
    plot.setData(data, zoom === null);
    if (zoom) plot.setScale("x", zoom);
  };
  return {
    setNow: (step: number | null) => {
      if (step === now) return;
      now = step;
      plot.redraw(false);
    },
    setData: (data: ChartData, told: readonly Mark[]) => {
      marks = told;
      dashDoubles(plot, data.values.slice(0, options.colors.length), dashed);
      show([data.steps, ...data.values] as uPlot.AlignedData);
    },
    setZoom: (chosen: Zoom | null) => {
      if (chosen?.min === zoom?.min && chosen?.max === zoom?.max) return;
      zoom = chosen;
      show(plot.data);
    },
    setSize: (width: number, height: number) => plot.setSize({ width, height }),
    destroy: () => plot.destroy(),
  };
}

const DASH = [7, 7];
/** Of the run that this one was forked from. */
const DOTS = [2, 3];

/** A curve that lies on an earlier one is dashed, so that both are seen. */
function dashDoubles(
  plot: uPlot,
  lines: readonly (number | null)[][],
  dashed: readonly boolean[],
): void {
  const drawn = lines.map(knownOf);
  for (const [index, line] of lines.entries()) {
    const isDouble = dashed[index] || drawn.slice(0, index).some((points) => liesOn(line, points));
    const series = plot.series[index + 1];
    if (series) series.dash = isDouble ? DASH : [];
  }
}

type Known = readonly (readonly [index: number, value: number])[];

/** What a curve has, without the steps at which only others have something: all pairs are compared, with every news. */
function knownOf(line: readonly (number | null)[]): Known {
  return line.flatMap((value, index) => (value === null ? [] : [[index, value] as const]));
}

function liesOn(line: readonly (number | null)[], points: Known): boolean {
  let shared = 0;
  for (const [index, beside] of points) {
    const value = line[index] ?? null;
    if (value === null) continue;
    if (Math.abs(value - beside) > 1e-9 * Math.max(1, Math.abs(value))) return false;
    shared += 1;
  }
  return shared > 1;
}

const LOOKS: Record<Mark["kind"], { color: string; isLine: boolean }> = {
  phase: { color: "var(--muted)", isLine: true },
  edit: { color: "var(--accent-text)", isLine: true },
  alert: { color: "var(--warning-mark)", isLine: false },
  checkpoint: { color: "var(--faint)", isLine: false },
};

export function drawMarks(plot: uPlot, marks: readonly Mark[], font: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = font.replace(/\d+px/, `${12 * devicePixelRatio}px`);
  ctx.lineWidth = devicePixelRatio;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  let free = Number.NEGATIVE_INFINITY;
  let lined = Number.NEGATIVE_INFINITY;
  let ticked = Number.NEGATIVE_INFINITY;
  const write = (label: string, x: number) => {
    const { width } = ctx.measureText(label);
    const left = Math.max(bbox.left, Math.min(x, bbox.left + bbox.width - width));
    if (left < free || width > bbox.width) return;
    ctx.fillText(label, left, bbox.top - 2 * devicePixelRatio);
    free = left + width + 8 * devicePixelRatio;
  };
  const begun = marks.findLast(
    ({ kind, step }) => kind === "phase" && plot.valToPos(step, "x", true) <= bbox.left + 1,
  );
  if (begun) {
    ctx.fillStyle = resolveColor(LOOKS.phase.color);
    write(begun.label, bbox.left);
  }
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.step, "x", true));
    if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) continue;
    const { color, isLine } = LOOKS[mark.kind];
    ctx.strokeStyle = resolveColor(color);
    ctx.fillStyle = resolveColor(color);
    if (!isLine) {
      // Of ticks that stand closer than can be told apart one is enough; what is kept is always there.
      const isNear = x - ticked < 16 * devicePixelRatio;
      if (isNear && mark.isGone !== false) continue;
      ticked = x;
      drawTick(ctx, x, bbox.top + bbox.height, mark.isGone ?? false);
      continue;
    }
    ctx.globalAlpha = x - lined < 24 * devicePixelRatio ? 0.2 : 0.7;
    lined = x;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    drawLine(plot, x);
    ctx.globalAlpha = 1;
    write(mark.label, x);
  }
  ctx.restore();
}

function drawLine({ ctx, bbox }: uPlot, x: number): void {
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
}

function drawTick(ctx: CanvasRenderingContext2D, x: number, foot: number, isHollow: boolean): void {
  const size = 4 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.moveTo(x - size, foot);
  ctx.lineTo(x + size, foot);
  ctx.lineTo(x, foot - 1.6 * size);
  ctx.closePath();
  if (isHollow) ctx.stroke();
  else ctx.fill();
}

function drawNow(plot: uPlot, step: number | null): void {
  if (step === null) return;
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(step, "x", true));
  if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) return;
  ctx.save();
  ctx.strokeStyle = resolveColor("var(--accent)");
  ctx.lineWidth = 2 * devicePixelRatio;
  drawLine(plot, x);
  ctx.restore();
}
