import { describe, expect, it } from "vitest";
import { metricInfo } from "@/catalog/metrics";
import { catalog } from "../fixtures/loops";

describe("what is said of a metric", () => {
  it.each([
    ["reward/mean", "Mean reward"],
    ["reward/exact", "Mean reward of a scorer"],
    ["class/0.5", "Share of a class"],
    ["pass@8", "Pass at k"],
    ["exact.accuracy", "Accuracy"],
    ["judge.pass@4", "Pass at k"],
    ["class_recall.wrong", "Lowest class recall"],
    ["win_rate.actor", "Win rate"],
    ["judge.elo.actor", "Elo"],
  ])("%s is found by its name, its family or its part", (name, title) => {
    expect(metricInfo(catalog, name).title).toBe(title);
  });

  it("has words of its own where nobody knows the name", () => {
    expect(metricInfo(catalog, "odd/name")).toMatchObject({ help: "", expect: "" });
  });
});
