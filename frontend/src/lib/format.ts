import type { RunSummary } from "@/api/types";

/** The one place where numbers become text for people. Pure. */

const DASH = "–";

function isNumber(value: number | null | undefined): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

const DECIMAL_UNITS = ["", "k", "M", "B", "T"] as const;
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

function scaled(value: number, base: number, units: readonly string[], gap: string): string {
  let size = Math.abs(value);
  let unit = 0;
  // What is rounded up to the base is one of the next unit.
  while (Number(digits(size)) >= base && unit < units.length - 1) {
    size /= base;
    unit += 1;
  }
  const sign = value < 0 ? "-" : "";
  const text = unit === 0 && Number.isInteger(size) ? String(size) : digits(size);
  return `${sign}${text}${units[unit] === "" ? "" : gap}${units[unit] ?? ""}`;
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** 1536 → "1.50 KiB". */
export function formatBytes(bytes: number | null | undefined): string {
  return isNumber(bytes) ? scaled(bytes, 1024, BYTE_UNITS, " ") : DASH;
}

/** 4096 → "4,096"; 7615616512 → "7.62B". */
export function formatCount(count: number | null | undefined): string {
  if (!isNumber(count)) return DASH;
  return Math.abs(count) < 100_000 && Number.isInteger(count) ? formatWhole(count) : short(count);
}

/** 7615616512 → "7,615,616,512". */
export function formatWhole(count: number): string {
  return count.toLocaleString("en-US");
}

function short(value: number): string {
  return scaled(value, 1000, DECIMAL_UNITS, "");
}

/** 41.2 → "41.2 s"; 4000 → "1 h 6 min". */
export function formatSeconds(seconds: number | null | undefined): string {
  if (!isNumber(seconds)) return DASH;
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (size < 1) return `${(seconds * 1000).toFixed(size < 0.01 ? 1 : 0)} ms`;
  if (size < 10) return `${seconds.toFixed(2)} s`;
  if (size < 60) return `${seconds.toFixed(1)} s`;
  const total = Math.round(seconds);
  if (total < 3600) return pair(total, 60, "min", 1, "s");
  if (total < 86_400) return pair(total, 3600, "h", 60, "min");
  return pair(total, 86_400, "d", 3600, "h");
}

/** In whole large units, and in small ones what is left. */
function pair(total: number, large: number, unit: string, small: number, rest: string): string {
  const left = Math.floor((total % large) / small);
  return `${Math.floor(total / large)} ${unit}${left === 0 ? "" : ` ${left} ${rest}`}`;
}

/** 1234.5 with "tok" → "1.23k tok/s". */
export function formatRate(perSecond: number | null | undefined, unit: string): string {
  if (!isNumber(perSecond)) return DASH;
  return `${rateNumber(perSecond)} ${unit}/s`;
}

/** The shortest form, where the unit is known: 44_400 → "44.4k/s". */
export function formatPerSecond(perSecond: number): string {
  return `${rateNumber(perSecond)}/s`;
}

function rateNumber(perSecond: number): string {
  if (perSecond === 0) return "0";
  return Math.abs(perSecond) < 1000 ? digits(perSecond) : short(perSecond);
}

/** 0.4231 → "42 %". */
export function formatShare(share: number | null | undefined): string {
  if (!isNumber(share)) return DASH;
  const percent = share * 100;
  return `${percent > 0 && percent < 1 ? "<1" : percent.toFixed(0)} %`;
}

export function formatMetric(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH;
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.001 || size >= 1e6) return value.toExponential(2);
  if (Number.isInteger(value)) return String(value);
  if (size >= 100) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  return value.toFixed(3);
}

/** The same in at most six signs, for where there is little room. */
export function formatBrief(value: number | null | undefined): string {
  const text = formatMetric(value);
  return text.includes("e") ? (value as number).toExponential(0).replace("+", "") : text;
}

/** The numbers of an axis: as short as they can be, all with as many decimals. */
export function formatTicks(ticks: readonly number[]): string[] {
  const texts = ticks.map(shortest);
  const decimals = Math.max(...texts.map((text) => text.split(".")[1]?.length ?? 0));
  return texts.map((text, place) =>
    text === "0" || !/^-?[\d.]+$/.test(text) ? text : (ticks[place] ?? 0).toFixed(decimals),
  );
}

function shortest(value: number): string {
  const size = Math.abs(value);
  if (size >= 10_000) return short(value);
  if (size !== 0 && size < 0.001) return value.toExponential(1).replace(".0e", "e");
  return String(Number(value.toPrecision(3)));
}

/** A moment on an axis whose marks are `step` seconds apart: as many decimals as tell them apart. */
export function formatMoment(seconds: number, step: number): string {
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  if (seconds < 60) return `${seconds.toFixed(decimals)} s`;
  if (seconds >= 3600 || decimals === 0) return formatSeconds(seconds);
  const minutes = Math.floor(seconds / 60);
  return `${minutes} min ${(seconds - 60 * minutes).toFixed(decimals)} s`;
}

/** "just now", "4 min ago", then a date. */
export function formatAgo(stamp: string | null | undefined, now: number = Date.now()): string {
  if (!stamp) return DASH;
  const time = Date.parse(stamp);
  if (Number.isNaN(time)) return DASH;
  const seconds = Math.round((now - time) / 1000);
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    year: "numeric",
  });
}

export function formatClock(stamp: string): string {
  const time = new Date(stamp);
  if (Number.isNaN(time.getTime())) return DASH;
  return time.toLocaleTimeString(undefined, { hour12: false });
}

const ACRONYMS = new Set("gpu cpu kl lr id url ema kv gae api json dp tp sft".split(" "));

/** "completions_per_prompt" → "Completions per prompt"; "kv_cache" → "KV cache". */
export function formatName(name: string): string {
  const words = name
    .split(/[_\-\s]+/)
    .filter((word) => word !== "")
    .map((word) => {
      const single = word.replace(/s$/, "");
      return ACRONYMS.has(single) ? word.replace(single, single.toUpperCase()) : word;
    });
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** 1 → "1 problem", 2 → "2 problems". */
export function formatPlural(count: number, singular: string, plural = `${singular}s`): string {
  return `${formatCount(count)} ${count === 1 ? singular : plural}`;
}

/** From the start of a run to its end, else to `now`; null before it started, and where neither is known. */
export function secondsOf(
  { started_at, ended_at }: Pick<RunSummary, "started_at" | "ended_at">,
  now: number | null = null,
): number | null {
  const end = ended_at ? Date.parse(ended_at) : now;
  return started_at && end !== null ? (end - Date.parse(started_at)) / 1000 : null;
}
