/** What happened, on a chart: a line where a phase begins or a setting was changed, with its name above the curves; a tick for the rest. */
import type uPlot from "uplot";
import { resolveColor } from "@/lib/colors";
import type { Mark } from "@/live/marks";

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
    // Phases that follow each other closely are a texture, not lines to read.
    ctx.globalAlpha = x - lined < 24 * devicePixelRatio ? 0.2 : 0.7;
    lined = x;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    write(mark.label, x);
  }
  ctx.restore();
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

/** Where a replay is. */
export function drawNow(plot: uPlot, step: number | null): void {
  if (step === null) return;
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(step, "x", true));
  if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) return;
  ctx.save();
  ctx.strokeStyle = resolveColor("var(--accent)");
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}
