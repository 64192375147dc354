import { describe, expect, it } from "vitest";
import type { PlanSummary } from "@/api/types";
import { isAlwaysDead } from "@/features/canvas/LoopEdge";

function plan(...dead: string[][]): PlanSummary {
  return { phases: dead.map((dead_edges) => ({ dead_edges })) } as unknown as PlanSummary;
}

describe("an edge is dead", () => {
  it("where no phase has rows for it", () => {
    expect(isAlwaysDead(plan(["brevity"], ["brevity", "other"]), "brevity")).toBe(true);
  });

  it("not where a phase wakes it", () => {
    expect(isAlwaysDead(plan(["brevity"], []), "brevity")).toBe(false);
  });

  it("not before there is a plan", () => {
    expect(isAlwaysDead(null, "brevity")).toBe(false);
    expect(isAlwaysDead(plan(), "brevity")).toBe(false);
  });
});
