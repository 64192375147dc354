import { describe, expect, it } from "vitest";
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatMetric,
  formatName,
  formatPlural,
  formatRate,
  formatSeconds,
  formatShare,
  formatTick,
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
    [2300, "2300"],
    [12_345, "12.3k"],
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

  it("rates, shares, ticks and plurals", () => {
    expect(formatRate(34_900, "tok")).toBe("34.9k tok/s");
    expect(formatShare(0.421)).toBe("42 %");
    expect(formatShare(0.001)).toBe("<1 %");
    expect(formatTick(0.0008)).toBe("8e-4");
    expect(formatTick(0.25)).toBe("0.25");
    expect(formatPlural(1, "error")).toBe("1 error");
    expect(formatPlural(3, "error")).toBe("3 errors");
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
