// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import type { JsonObject } from "@/api/types";
import { ScheduleStrip } from "@/features/schedule/ScheduleStrip";
import { placesOf, sharesOf, stripOf } from "@/features/schedule/strip";
import { useSelection } from "@/state/selection";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const loop = (schedule: JsonObject) => {
  const document = smallLoop();
  document.rest.schedule = schedule;
  return document;
};
const strip = (schedule: JsonObject) => stripOf(catalog, loop(schedule), null);
const rl = (steps: number) => ({ name: "rl", steps, learn: ["actor.rewards"] });
const judge = (steps: number) => ({ name: "judge", steps, learn: ["verifier"] });

afterEach(cleanup);

describe("the schedule in proportion", () => {
  it("phases follow each other, rounds repeat, and each learner has the steps in which it learns", () => {
    const found = strip({ phases: [judge(40), { repeat: 3, phases: [rl(3), judge(1)] }] });

    expect(found.steps).toBe(52);
    expect(found.items.map(({ from, steps, length }) => [from, steps, length])).toEqual([
      [0, 40, "40 steps"],
      [40, 12, "3 rounds of 3 + 1"],
    ]);
    expect(Object.fromEntries(found.learners)).toEqual({
      verifier: [
        { from: 0, to: 40 },
        { from: 43, to: 44 },
        { from: 47, to: 48 },
        { from: 51, to: 52 },
      ],
      actor: [
        { from: 40, to: 43 },
        { from: 44, to: 47 },
        { from: 48, to: 51 },
      ],
    });
  });

  it("a short phase is wide enough to be read, and drawn to scale within its width", () => {
    const found = strip({ phases: [judge(900), { repeat: 3, phases: [rl(3), judge(1)] }] });
    const shares = sharesOf(found);
    const place = placesOf(found, shares, 100);

    expect(shares[0]).toBeCloseTo(0.8);
    expect([0, 450, 900, 906, 912].map(place).map(Math.round)).toEqual([0, 40, 80, 90, 100]);
  });

  it("a learner's own rhythm is drawn as it is", () => {
    const found = strip({ phases: [rl(7)], learn: { actor: { every: 3, after: 1 } } });

    expect(found.learners.get("actor")).toEqual([
      { from: 1, to: 2 },
      { from: 4, to: 5 },
    ]);
  });

  it("a phase that ends by itself has a place, and nobody says how long it is", () => {
    const found = strip({ phases: [rl(100), { name: "fill", until: "pool.full", learn: [] }] });

    expect(found.isKnown).toBe(false);
    expect(found.items[1]).toMatchObject({ steps: 20, isKnown: false, length: "until pool.full" });
  });

  it("a loop without phases is one whole, of everything that can learn", () => {
    const found = strip({ steps: 9 });

    expect(found.items).toMatchObject([{ name: "whole run", steps: 9, at: [] }]);
    expect([...found.learners.keys()]).toEqual(["actor"]);
  });

  it("a million rounds are one span", () => {
    const found = strip({ phases: [{ repeat: 1_000_000, phases: [rl(3), judge(1)] }] });

    expect(found.learners.get("actor")).toEqual([{ from: 0, to: 4_000_000 }]);
  });
});

it("a loop without a schedule has a strip", () => {
  const document = smallLoop();
  delete document.rest.schedule;
  render(<ScheduleStrip />, { wrapper: insideLoop({ document }).wrapper });

  expect(screen.queryByRole("list", { name: "Values that change" })).toBeNull();
});

it("a press chooses the phase, and a ramp is a chip", () => {
  const document = loop({
    phases: [judge(40), { repeat: 3, phases: [rl(3), judge(1)] }],
    anneal: [{ path: "edges.outcome.weight", from: 0.1, to: 0.001 }],
  });
  const { wrapper: Wrapper } = insideLoop({ document });
  render(
    <Wrapper>
      <ScheduleStrip />
    </Wrapper>,
  );

  fireEvent.click(screen.getByRole("button", { name: "Choose rl, judge 3 rounds of 3 + 1" }));
  expect(useSelection.getState().phase).toEqual([1]);
  expect(screen.getByText("4 steps, 3 ×")).toBeTruthy();
  expect(screen.getAllByRole("img").map((image) => image.getAttribute("aria-label"))).toEqual([
    "verifier learns in 43 steps, actor learns in 9 steps",
    "actor learns in 3 steps, verifier learns in 1 step",
  ]);

  fireEvent.click(screen.getByRole("button", { name: "weight 0.1 → 0.001" }));
  expect(useSelection.getState().entry).toEqual({ list: "anneal", index: 0 });
});
