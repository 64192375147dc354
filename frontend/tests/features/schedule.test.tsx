// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { phaseAt, phaseList, phaseNames } from "@/document/phases";
import { leaveGroup } from "@/features/schedule/PhaseItem";
import { SchedulePanel } from "@/features/schedule/SchedulePanel";
import { useSelection } from "@/state/selection";
import { smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

afterEach(cleanup);

function show() {
  const { wrapper, store } = insideLoop();
  render(<SchedulePanel />, { wrapper });
  const press = (name: string) => fireEvent.click(screen.getByRole("button", { name }));
  const groups = () =>
    (phaseList(store.getState().document, []) ?? []).map((phase) =>
      Array.isArray(phase.phases) ? phase.phases.length : 0,
    );
  const chosen = () =>
    phaseAt(store.getState().document, useSelection.getState().phase ?? [])?.name;
  return { store, press, groups, chosen };
}

describe("a phase", () => {
  it("counts the ports that its card has no room for", () => {
    const loop = smallLoop();
    const learn = ["a.rewards", "b.rewards", "c.rewards", "d.rewards"];
    loop.rest.schedule = { phases: [{ name: "all", steps: 1, learn }] };
    const { wrapper } = insideLoop({ document: loop });
    render(<SchedulePanel />, { wrapper });

    expect(screen.getByText("b.rewards")).toBeTruthy();
    expect(screen.queryByText("c.rewards")).toBeNull();
    expect(screen.getByText("and 2 more").title).toBe("c.rewards, d.rewards");
  });
});

describe("moving a phase", () => {
  it("goes into a group, through it and out on the other side", () => {
    const { press, groups, chosen } = show();
    expect(groups()).toEqual([0, 1]);

    press("Move warm-up right");
    expect(groups()).toEqual([2]);
    expect(chosen()).toBe("warm-up");

    press("Move warm-up right");
    press("Move warm-up right");

    expect(groups()).toEqual([1, 0]);
    expect(chosen()).toBe("warm-up");
  });

  it("and back again", () => {
    const { store, press, chosen } = show();
    for (let count = 0; count < 3; count += 1) press("Move warm-up right");

    for (let count = 0; count < 3; count += 1) press("Move warm-up left");

    expect(phaseNames(store.getState().document)).toEqual(["warm-up", "rl"]);
    expect(phaseList(store.getState().document, [])).toHaveLength(2);
    expect(chosen()).toBe("warm-up");
  });

  it("the last phase of a group takes the group with it", () => {
    const left = leaveGroup(smallLoop(), [1, 0], 1);

    expect(left?.phases.map((phase) => phase.name)).toEqual(["warm-up", "rl"]);
    expect(left?.at).toEqual([1]);
  });

  it("ends at the ends of the strip", () => {
    show();

    expect(screen.getByRole("button", { name: "Move warm-up left" })).toHaveProperty(
      "disabled",
      true,
    );
    expect(screen.getByRole("button", { name: "Move rl right" })).toHaveProperty("disabled", false);
  });
});
