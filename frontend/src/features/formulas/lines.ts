/** A term's lines as a tree: what a formula names, and what those formulas name. Pure. */
import type { Line } from "@/api/types";
import { formatBytes, formatCount, formatSeconds } from "@/lib/format";

export interface Named {
  line: Line;
  inside: Named[];
}

/** Lines come with their depth, each below what named it first. */
export function treeOf(lines: readonly Line[]): Named[] {
  const found: Named[] = [];
  const open: Named[] = [];
  for (const line of lines) {
    const named = { line, inside: [] };
    open.length = Math.max(line.depth - 1, 0);
    (open.at(-1)?.inside ?? found).push(named);
    open.push(named);
  }
  return found;
}

type Unit = Line["unit"];

export function formatAmount(value: number, unit: Unit): string {
  switch (unit) {
    case "B":
      return value < 1024 ? `${rounded(value)} B` : formatBytes(value);
    case "s":
      return value !== 0 && Math.abs(value) < 1e-6
        ? `${rounded(value * 1e9)} ns`
        : formatSeconds(value);
    case "FLOP/s":
      return `${rounded(value / 1e12)} TFLOP/s`;
    case "B/s":
      return `${rounded(value / 1e9)} GB/s`;
    case "tokens":
      return `${rounded(value)} tokens`;
    case "GPU-hours":
      return `${rounded(value)} GPU-hours`;
    case "money":
      return value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    default:
      return rounded(value);
  }
}

function rounded(value: number): string {
  if (Math.abs(value) >= 100_000 || Number.isInteger(value)) return formatCount(value);
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

/** A formula in pieces: names and numbers, and the signs between them. */
export function piecesOf(formula: string): { text: string; isSign: boolean }[] {
  return formula
    .split(/( [×÷+−] |[()])/)
    .filter((text) => text !== "")
    .map((text) => ({ text, isSign: /^( [×÷+−] |[()])$/.test(text) }));
}
