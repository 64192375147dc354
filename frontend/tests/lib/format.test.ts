import { describe, expect, it } from "vitest";
import {
  formatAgo,
  formatBrief,
  formatBytes,
  formatCount,
  formatMetric,
  formatMoment,
  formatName,
  formatPlural,
  formatRate,
  formatSeconds,
  formatShare,
  formatTicks,
} from "@/lib/format";

describe("format", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.50 KiB"],
    [80 * 1024 ** 3, "80.0 GiB"],
    [1024 ** 2 - 1, "1.00 MiB"],
    [null, "–"],
  ])("%s bytes are %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it.each([
    [7, "7"],
    [2300, "2,300"],
    [12_345, "12,345"],
    [123_456, "123k"],
    [7_615_616_512, "7.62B"],
    [undefined, "–"],
  ])("the count %s is %s", (count, text) => {
    expect(formatCount(count)).toBe(text);
  });

  it.each([
    [0, "0 s"],
    [0.0000042, "4 µs"],
    [0.0056, "5.6 ms"],
    [0.123, "123 ms"],
    [4.2, "4.20 s"],
    [41.23, "41.2 s"],
    [125, "2 min 5 s"],
    [3600, "1 h"],
    [4000, "1 h 6 min"],
    [90_000, "1 d 1 h"],
  ])("%s seconds are %s", (seconds, text) => {
    expect(formatSeconds(seconds)).toBe(text);
  });

  it.each([
    [0, "0"],
    [0.25, "0.250"],
    [1.5, "1.50"],
    [-234.56, "-234.6"],
    [0.0001, "1.00e-4"],
    [Number.NaN, "NaN"],
    [null, "–"],
  ])("the metric %s is %s", (value, text) => {
    expect(formatMetric(value)).toBe(text);
  });

  it.each([
    [-0.000859, "-9e-4"],
    [1_234_567, "1e6"],
    [-234.56, "-234.6"],
    [null, "–"],
  ])("the metric %s is %s where there is little room", (value, text) => {
    expect(formatBrief(value)).toBe(text);
  });

  it("rates, shares, ticks and plurals", () => {
    expect(formatRate(34_900, "tok")).toBe("34.9k tok/s");
    expect(formatShare(0.421)).toBe("42 %");
    expect(formatShare(0.001)).toBe("<1 %");
    expect(formatPlural(1, "error")).toBe("1 error");
    expect(formatPlural(3, "error")).toBe("3 errors");
  });

  it.each([
    [
      [0, 0.25, 0.5, 0.75],
      ["0", "0.25", "0.50", "0.75"],
    ],
    [
      [-0.4, 0, 2],
      ["-0.4", "0", "2.0"],
    ],
    [
      [0, 500, 1000],
      ["0", "500", "1000"],
    ],
    [
      [0, 0.0004, 0.0008],
      ["0", "4e-4", "8e-4"],
    ],
    [
      [0, 20_000],
      ["0", "20.0k"],
    ],
  ])("the numbers of an axis have as many decimals: %s", (ticks, texts) => {
    expect(formatTicks(ticks)).toEqual(texts);
  });

  it.each([
    [5, [0, 5, 10, 65], ["0 s", "5 s", "10 s", "1 min 5 s"]],
    [0.5, [0, 0.5, 61.5], ["0.0 s", "0.5 s", "1 min 1.5 s"]],
    [0.05, [9.95, 10], ["9.95 s", "10.00 s"]],
    [600, [0, 3000, 3600], ["0 s", "50 min", "1 h"]],
  ])("moments %s s apart on an axis: %s", (step, moments, texts) => {
    expect(moments.map((seconds) => formatMoment(seconds, step))).toEqual(texts);
  });

  it("names are words, and short forms are capitals", () => {
    expect(formatName("completions_per_prompt")).toBe("Completions per prompt");
    expect(formatName("gpus_per_node")).toBe("GPUs per node");
    expect(formatName("kv_cache")).toBe("KV cache");
  });

  it("times ago", () => {
    const now = Date.parse("2026-01-01T12:00:00Z");

    expect(formatAgo("2026-01-01T11:59:58Z", now)).toBe("just now");
    expect(formatAgo("2026-01-01T11:48:00Z", now)).toBe("12 min ago");
    expect(formatAgo("2026-01-01T09:00:00Z", now)).toBe("3 h ago");
    expect(formatAgo(null, now)).toBe("–");
  });
});
