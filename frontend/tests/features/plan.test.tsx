// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import type { CheckAnswer, PlannedStage } from "@/api/types";
import { PlanPanel, rowsText } from "@/features/plan/PlanPanel";
import { useSelection } from "@/state/selection";
import { insideLoop } from "../fixtures/open";

const stage = (name: string, rows: string | null, passes = 1): PlannedStage => ({
  stage: name,
  node: name.split(".")[0] ?? "",
  rows,
  breakdown: "",
  passes,
});

const CHECK = {
  report: { ok: true, diagnostics: [] },
  estimate: null,
  plan: {
    phases: [
      {
        name: "rl",
        index: 0,
        rounds: 3,
        steps: 5,
        ends: "5 steps",
        learn: ["actor.rewards"],
        stages: [],
        rows: [stage("actor.generate", "8", 4), stage("actor.sync", null)],
        updates: ["actor.learn: actor (rewards; at most 8 rows)"],
        dead_edges: [],
      },
    ],
    probes: [
      {
        node: "probe",
        every: 5,
        text: "probe probe, every 5 steps; loads 3 rows of held_out",
        writers: ["actor"],
        greedy: true,
        samples: null,
        rows: [stage("held_out.load", "3")],
      },
    ],
    decisions: [
      { path: "nodes.actor.training.dtype", value: "float32", reason: "float32 on a CPU" },
      { path: "nodes.actor.training.packing", value: false, reason: "rows are padded" },
      { path: "threads", value: 2, reason: "all cores" },
    ],
    breakdowns: [],
    explain: [],
  },
  mode: "online",
} satisfies CheckAnswer;

function show() {
  const { wrapper, syncStore } = insideLoop();
  syncStore.setState({ check: CHECK });
  return render(<PlanPanel />, { wrapper });
}

afterEach(cleanup);

describe("the plan", () => {
  it("says rows of every stage, who trains, and what an evaluation loads", () => {
    show();

    const phase = screen.getByRole("article", { name: "Phase rl" });
    expect(phase.textContent).toContain("5 steps, 3 times");
    expect(phase.textContent).toContain("actor.generate8 a pass");
    expect(phase.textContent).toContain("actor.learn: actor (rewards; at most 8 rows)");
    const probe = screen.getByRole("article", { name: "Evaluation probe" });
    expect(probe.textContent).toContain("loads 3 rows of held_out");
    expect(probe.textContent).toContain("held_out.load3");
  });

  it("says what was chosen and why, and shows the field", () => {
    show();

    const chosen = screen.getByRole("article", { name: "Chosen settings" });
    expect(chosen.textContent).toContain("actor training.dtypefloat32float32 on a CPU");
    expect(chosen.textContent).toContain("actor training.packingfalserows are padded");
    expect(chosen.textContent).toContain("threads2all cores");
    fireEvent.click(screen.getByRole("button", { name: "actor training.dtype" }));
    expect([...useSelection.getState().nodes]).toEqual(["actor"]);
    expect(useSelection.getState().focus).toMatchObject({ field: "training.dtype" });
  });

  it("a stage shows its node", () => {
    show();

    fireEvent.click(screen.getByRole("button", { name: /actor.sync/ }));

    expect([...useSelection.getState().nodes]).toEqual(["actor"]);
  });

  it("tells how a number comes about", () => {
    const one = { ...stage("a.generate", "8", 3), breakdown: "4 rows of `p` x 2 completions" };

    expect(rowsText(one)).toBe(
      "8 rows a step: 4 rows of `p` x 2 completions; at most 3 passes a step",
    );
    expect(rowsText(stage("a.sync", null))).toBe("a.sync works on no rows");
  });
});
