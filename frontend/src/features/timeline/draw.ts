/** Paints the timeline on a canvas. Knows nothing of runs; bars and colours come in. */
import { resolveColor } from "@/lib/colors";
import { formatSeconds } from "@/lib/format";
import type { StageSpan } from "@/live/state";
import { type Range, type TimelineRow, tickStep } from "./rows";

export const ROW = 22;
export const AXIS = 22;

interface Painting {
  rows: readonly TimelineRow[];
  range: Range;
  /** Zero of the axis. */
  origin: number;
  now: number;
  colorOf: (node: string) => string;
  hovered: StageSpan | null;
}

export function drawTimeline(canvas: HTMLCanvasElement, painting: Painting): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const scale = devicePixelRatio;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== width * scale || canvas.height !== height * scale) {
    canvas.width = width * scale;
    canvas.height = height * scale;
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  drawAxis(context, painting, width, height);
  for (const [index, row] of painting.rows.entries()) {
    if (row.opens) drawLine(context, AXIS + index * ROW, width);
    drawRow(context, row, AXIS + index * ROW, width, painting);
  }
}

function xOf(time: number, range: Range, width: number): number {
  return ((time - range.start) / (range.end - range.start || 1)) * width;
}

function drawAxis(
  context: CanvasRenderingContext2D,
  { range, origin }: Painting,
  width: number,
  height: number,
): void {
  const step = tickStep(range, width / 90);
  context.font = `10px ${getComputedStyle(document.body).fontFamily}`;
  context.fillStyle = resolveColor("var(--muted)");
  context.strokeStyle = resolveColor("var(--line)");
  context.textBaseline = "middle";
  const first = Math.ceil((range.start - origin) / step) * step + origin;
  for (let time = first; time <= range.end; time += step) {
    const x = Math.round(xOf(time, range, width)) + 0.5;
    context.beginPath();
    context.moveTo(x, AXIS - 4);
    context.lineTo(x, height);
    context.stroke();
    context.fillText(formatSeconds((time - origin) / 1000), x + 3, AXIS / 2);
  }
}

/** Between the stages of two pools. */
function drawLine(context: CanvasRenderingContext2D, y: number, width: number): void {
  context.strokeStyle = resolveColor("var(--line)");
  context.beginPath();
  context.moveTo(0, y + 0.5);
  context.lineTo(width, y + 0.5);
  context.stroke();
}

function drawRow(
  context: CanvasRenderingContext2D,
  row: TimelineRow,
  y: number,
  width: number,
  painting: Painting,
): void {
  const { range, now, hovered } = painting;
  context.fillStyle = resolveColor(painting.colorOf(row.node));
  let covered = Number.NEGATIVE_INFINITY;
  for (const span of row.spans) {
    const end = span.end ?? now;
    if (end < range.start || span.start > range.end) continue;
    const left = Math.max(-2, xOf(span.start, range, width));
    const right = Math.min(width + 2, xOf(end, range, width));
    // Bars closer than a pixel melt together, so that long runs stay quick to draw.
    if (right - covered < 0.5 && span !== hovered) continue;
    covered = right;
    context.globalAlpha = span === hovered ? 1 : span.end === null ? 0.55 : 0.82;
    context.fillRect(left, y + 3, Math.max(1, right - left - 0.5), ROW - 6);
  }
  context.globalAlpha = 1;
}

/** The bar at a point, if any. */
export function spanAt(
  rows: readonly TimelineRow[],
  range: Range,
  width: number,
  x: number,
  y: number,
  now: number,
): StageSpan | null {
  const row = rows[Math.floor((y - AXIS) / ROW)];
  if (!row) return null;
  const time = range.start + (x / width) * (range.end - range.start);
  const slack = ((range.end - range.start) / width) * 2;
  return (
    row.spans.findLast((span) => span.start - slack <= time && time <= (span.end ?? now) + slack) ??
    null
  );
}
