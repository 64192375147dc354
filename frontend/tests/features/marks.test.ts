// @vitest-environment jsdom
import type uPlot from "uplot";
import { expect, it } from "vitest";
import { drawMarks } from "@/features/charts/plot";
import { type Mark, marksNow } from "@/live/marks";

const LETTER = 6;
const TOP = 18;
const [LEFT, WIDTH] = [30, 200];

/** Where each name is written on a chart of the steps `from` to `to`. */
function written(marks: readonly Mark[], from: number, to: number) {
  const found: Record<string, { x: number; y: number; baseline: string }> = {};
  const nothing = () => {};
  const ctx = {
    font: "12px Inter",
    textBaseline: "",
    measureText: (text: string) => ({ width: text.length * LETTER }),
    fillText(text: string, x: number, y: number) {
      found[text] = { x, y, baseline: this.textBaseline };
    },
    ...{ save: nothing, restore: nothing, beginPath: nothing, closePath: nothing, fill: nothing },
    ...{ moveTo: nothing, lineTo: nothing, stroke: nothing, setLineDash: nothing },
  };
  const bbox = { left: LEFT, top: TOP, width: WIDTH, height: 80 };
  const valToPos = (step: number) => LEFT + ((step - from) / (to - from)) * WIDTH;
  drawMarks({ ctx, bbox, valToPos } as unknown as uPlot, marks, ctx.font);
  return found;
}

/** Where ticks stand: those that are filled, and those that are only outlined. */
function ticked(marks: readonly Mark[]) {
  const ticks: { full: number[]; hollow: number[] } = { full: [], hollow: [] };
  const nothing = () => {};
  let at = 0;
  const ctx = {
    font: "12px Inter",
    ...{ save: nothing, restore: nothing, beginPath: nothing, closePath: nothing },
    setLineDash: nothing,
    moveTo: nothing,
    lineTo: (x: number) => {
      at = x;
    },
    fill: () => ticks.full.push(at - LEFT),
    stroke: () => ticks.hollow.push(at - LEFT),
  };
  const bbox = { left: LEFT, top: TOP, width: WIDTH, height: 80 };
  const valToPos = (step: number) => LEFT + 2 * step;
  drawMarks({ ctx, bbox, valToPos } as unknown as uPlot, marks, ctx.font);
  return ticks;
}

const phase = (label: string, step: number): Mark => ({ kind: "phase", label, step });

it("names of phases stand above the curves, at their lines and within the chart", () => {
  const names = written([phase("warm-up", 0), phase("rl", 50), phase("together", 99)], 0, 100);

  expect(names["warm-up"]?.x).toBe(LEFT);
  expect(names.rl?.x).toBe(LEFT + WIDTH / 2);
  expect(names.together?.x).toBe(LEFT + WIDTH - "together".length * LETTER);
  for (const { y, baseline } of Object.values(names)) {
    expect(baseline).toBe("bottom");
    expect(y).toBeLessThanOrEqual(TOP);
  }
});

it("a name that would touch another one is left out", () => {
  expect(Object.keys(written([phase("warm-up", 0), phase("rl", 10)], 0, 100))).toEqual(["warm-up"]);
});

it("the phase that had begun before what is shown is named at its start", () => {
  const marks = [phase("warm-up", 0), phase("rl", 20)];
  const rlAtStart = { rl: expect.objectContaining({ x: LEFT }) };

  expect(written(marks, 40, 100)).toEqual(rlAtStart);
  expect(written(marks, 20, 100)).toEqual(rlAtStart);
});

it("a checkpoint that is kept no more is only outlined, one that is kept is never left out", () => {
  const marks = [20, 40, 60, 62].map((step): Mark => ({ kind: "checkpoint", step, label: "" }));

  expect(ticked(marksNow(marks, new Set([60, 62])))).toEqual({
    full: [120, 124],
    hollow: [40, 80],
  });
  expect(ticked(marksNow(marks, null))).toEqual({ full: [40, 80, 120], hollow: [] });
});
