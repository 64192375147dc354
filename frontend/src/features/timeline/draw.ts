import { resolveColor } from "@/lib/colors";
import { formatMoment } from "@/lib/format";
import type { StageSpan } from "@/live/state";
import { type Bar, type Range, type TimelineRow, tickStep } from "./rows";

export const ROW = 27;
export const LOW_ROW = 24;
export const AXIS = 20;

export interface Painting {
  rows: readonly TimelineRow[];
  rowHeight: number;
  range: Range;
  origin: number;
  now: number;
  steps: readonly { step: number; at: number }[];
  colorOf: (node: string) => string;
  hovered: StageSpan | null;
  brush: Range | null;
}

/** Verbs that are drawn lightly: they stand beside others of the same node. */
const LIGHT: ReadonlySet<string> = new Set(["learn"]);
const FEWEST_STEP_PIXELS = 56;

/** What is drawn, and on what. */
interface Paper extends Painting {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
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
  context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "middle";
  const paper = { ...painting, context, width, height };
  for (const [index, row] of painting.rows.entries()) {
    const y = AXIS + index * painting.rowHeight;
    if (row.showsIdle) drawIdle(paper, y);
    drawRow(paper, row, y);
  }
  drawAxis(paper);
  if (painting.brush) drawBrush(paper, painting.brush);
}

function xOf({ range, width }: Paper, time: number): number {
  return ((time - range.start) / (range.end - range.start || 1)) * width;
}

function drawAxis(paper: Paper): void {
  const { context, width, range, origin, steps } = paper;
  context.strokeStyle = resolveColor("var(--line-strong)");
  context.fillStyle = resolveColor("var(--muted)");
  if (steps.length > 0 && width / steps.length >= FEWEST_STEP_PIXELS) {
    let free = Number.NEGATIVE_INFINITY;
    for (const { step, at } of steps) {
      const x = xOf(paper, at);
      const text = x < free ? "" : `step ${step}`;
      drawLine(paper, x, text);
      if (text) free = x + context.measureText(text).width + 10;
    }
    return;
  }
  const step = tickStep(range, width / 90);
  const first = Math.ceil((range.start - origin) / step) * step + origin;
  for (let time = first; time <= range.end; time += step) {
    drawLine(paper, xOf(paper, time), formatMoment((time - origin) / 1000, step / 1000));
  }
}

function drawLine({ context, height }: Paper, at: number, text: string): void {
  const x = Math.round(at) + 0.5;
  context.globalAlpha = 0.7;
  context.beginPath();
  context.moveTo(x, 4);
  context.lineTo(x, height);
  context.stroke();
  context.globalAlpha = 1;
  context.fillText(text, x + 4, AXIS / 2);
}

/** Time in which nobody works is hatched, never blank. */
function drawIdle({ context, width, rowHeight }: Paper, y: number): void {
  context.save();
  context.beginPath();
  context.rect(0, y + 4, width, rowHeight - 8);
  context.clip();
  context.fillStyle = resolveColor("var(--sunken)");
  context.fillRect(0, y, width, rowHeight);
  context.strokeStyle = resolveColor("var(--line-strong)");
  context.globalAlpha = 0.8;
  context.beginPath();
  for (let x = -rowHeight; x < width; x += 7) {
    context.moveTo(x, y + rowHeight);
    context.lineTo(x + rowHeight, y);
  }
  context.stroke();
  context.restore();
}

function drawRow(paper: Paper, row: TimelineRow, y: number): void {
  const { width, range, now, hovered } = paper;
  const covered = new Map<string, number>();
  for (const bar of row.bars) {
    const end = bar.end ?? now;
    if (end < range.start || bar.start > range.end) continue;
    const left = Math.max(-2, xOf(paper, bar.start));
    const right = Math.min(width + 2, xOf(paper, end));
    const isHovered = bar.span === hovered;
    // Bars of a node that are closer than a pixel melt together, so that long runs stay quick to draw.
    if (right - (covered.get(bar.span.node) ?? -9) < 0.5 && !isHovered) continue;
    covered.set(bar.span.node, right);
    drawBar(paper, bar, left, y + 4, right - left);
  }
}

function drawBar(paper: Paper, { span, end }: Bar, x: number, y: number, width: number): void {
  const { context, colorOf, hovered, rowHeight } = paper;
  const height = rowHeight - 8;
  const verb = span.stage.split(".").at(-1) ?? span.stage;
  context.fillStyle = resolveColor("var(--surface)");
  context.fillRect(x, y, Math.max(1, width - 0.5), height);
  context.fillStyle = resolveColor(colorOf(span.node));
  const isLight = LIGHT.has(verb) || end === null;
  context.globalAlpha = span === hovered ? 1 : isLight ? 0.45 : 0.92;
  context.fillRect(x, y, Math.max(1, width - 0.5), height);
  context.globalAlpha = 1;
  if (context.measureText(verb).width + 12 > width) return;
  context.fillStyle = resolveColor(isLight && span !== hovered ? "var(--text)" : "var(--surface)");
  context.fillText(verb, Math.max(x, 0) + 6, y + height / 2 + 0.5);
}

function drawBrush(paper: Paper, brush: Range): void {
  const { context, height } = paper;
  const [from, to] = [xOf(paper, brush.start), xOf(paper, brush.end)];
  context.globalAlpha = 0.18;
  context.fillStyle = resolveColor("var(--accent)");
  context.fillRect(Math.min(from, to), 0, Math.abs(to - from), height);
  context.globalAlpha = 1;
}

export function spanAt(
  { rows, rowHeight, range, now }: Pick<Painting, "rows" | "rowHeight" | "range" | "now">,
  width: number,
  x: number,
  y: number,
): StageSpan | null {
  const row = rows[Math.floor((y - AXIS) / rowHeight)];
  if (!row) return null;
  const time = range.start + (x / width) * (range.end - range.start);
  const slack = ((range.end - range.start) / width) * 2;
  const found = row.bars.findLast(
    (bar) => bar.start - slack <= time && time <= (bar.end ?? now) + slack,
  );
  return found?.span ?? null;
}
