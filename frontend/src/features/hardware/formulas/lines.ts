/** A term's lines as a tree: what a formula names, and what those formulas name. Pure. */
import type { Line } from "@/api/types";
import { formatBytes, formatCount, formatSeconds } from "@/lib/format";

export interface Named {
  line: Line;
  inside: Named[];
}

/** What a term's formula names, and what those formulas name; a name that two formulas use is below both. */
export function treeOf([first, ...rest]: readonly Line[]): Named[] {
  const byName = new Map(rest.map((line) => [line.name, line]));
  // The longest first: "a token of a prompt" is not "a token".
  const names = [...byName.keys()].toSorted((a, b) => b.length - a.length);
  const read = (line: Line): Named => ({ line, inside: insideOf(line) });
  const insideOf = ({ formula }: Line) =>
    namesIn(formula ?? "", names).flatMap((name) => {
      const line = byName.get(name);
      return line ? [read(line)] : [];
    });
  return first ? insideOf(first) : [];
}

const LISTED = /^sum of (.+ )(\d+)( \(\d+\))? to .+ (\d+)(?: \(\d+\))?$/;

/** Names in a formula, each once and in its order; of a sum that is listed, all of the list. */
function namesIn(formula: string, names: readonly string[]): string[] {
  const [, each, from, which = "", to] = LISTED.exec(formula) ?? [];
  if (each !== undefined) {
    const numbers = Array.from(
      { length: Number(to) - Number(from) + 1 },
      (_, at) => at + Number(from),
    );
    return numbers.map((number) => {
      const own = `${each}${number}${which}`;
      return names.includes(own) ? own : `${each}${number}`;
    });
  }
  let left = formula;
  const found = names.flatMap((name) => {
    const at = left.indexOf(name);
    if (at < 0) return [];
    left = left.replaceAll(name, "\0".repeat(name.length));
    return [{ name, at }];
  });
  return found.toSorted((a, b) => a.at - b.at).map(({ name }) => name);
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
