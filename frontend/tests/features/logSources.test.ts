import { expect, it } from "vitest";
import { sourcesOf } from "@/features/runs/live/LogPanel";
import { elapsedText } from "@/features/runs/live/ReplayBar";

it("phases, triggers and alerts can be chosen apart, with their numbers", () => {
  const lines = ["log", "alert", "phase", "alert", "trigger", "own"].map((source) => ({ source }));

  expect(sourcesOf(lines)).toEqual([
    { source: "phase", count: 1 },
    { source: "trigger", count: 1 },
    { source: "alert", count: 2 },
    { source: "log", count: 1 },
    { source: "own", count: 1 },
  ]);
});

it("a replay says the time since the start of the run", () => {
  expect(elapsedText("2026-01-01T00:00:00Z", "2026-01-01T00:12:43Z")).toBe("after 12 min 43 s");
  expect(elapsedText(null, "2026-01-01T00:12:43Z")).toBe("");
  expect(elapsedText("2026-01-01T00:00:00Z", null)).toBe("");
});
