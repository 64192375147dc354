// @vitest-environment jsdom
import { act, cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { CompactCard } from "@/features/canvas/CompactCard";
import { LiveRun } from "@/live/LiveRun";
import { insideLoop } from "../fixtures/open";
import { someGauges } from "../fixtures/runs";

afterEach(cleanup);

function show(live?: LiveRun) {
  const { wrapper } = insideLoop(live ? { live } : {});
  const { container } = render(<CompactCard node="actor" dots={[]} />, { wrapper });
  const part = (name: string) => container.querySelector(`.compact-card${name}`);
  return { container, part };
}

describe("a compact card", () => {
  it("has the sign of its kind, its name and one number", () => {
    const { container, part } = show();

    expect(container.querySelector(".loop-node-icon svg")).not.toBeNull();
    expect(part("-name")?.textContent).toBe("actor");
    expect(container.querySelectorAll(".compact-card-number").length).toBe(1);
    expect(part("-number")?.textContent).not.toBe("");
    expect(part("")?.getAttribute("title")).toMatch(/^actor\n/);
  });

  it.each<[string | null, object]>([
    ["starved", { busy: 0.1, starved: 0.8, blocked: 0 }],
    ["blocked", { busy: 0.1, starved: 0, blocked: 0.8 }],
    [null, { busy: 0.9, starved: 0, blocked: 0 }],
  ])("says in a run that its node is %s", (state, gauge) => {
    const live = new LiveRun("r");
    const { part } = show(live);

    act(() => live.applyGauges(someGauges({ step: 3, nodes: { actor: gauge as never } })));

    expect(part("-pace")?.getAttribute("data-state") ?? null).toBe(state);
  });

  it("says in a run which node holds the others up", () => {
    const live = new LiveRun("r");
    const { part } = show(live);

    act(() =>
      live.applyGauges(
        someGauges({
          step: 3,
          nodes: { actor: { busy: 0.9 } as never },
          bottleneck: "actor.learn",
        }),
      ),
    );

    expect(part("-pace")?.getAttribute("data-state")).toBe("bottleneck");
  });
});
