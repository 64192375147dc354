import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Command } from "@/document/command";
import { addNode } from "@/document/commands/addNode";
import { connect } from "@/document/commands/connect";
import { moveNodes } from "@/document/commands/moveNodes";
import { removeItems } from "@/document/commands/removeItems";
import { renameNode } from "@/document/commands/renameNode";
import { setField } from "@/document/commands/setField";
import { setValue } from "@/document/commands/setValue";
import {
  dispatch,
  GROUP_MILLISECONDS,
  type History,
  redo,
  startHistory,
  undo,
} from "@/document/history";
import { catalog, smallLoop } from "../fixtures/loops";

interface Step {
  apply: (history: History, at: number) => History;
}

const step = <A>(command: Command<A>, args: A, group?: string): Step => ({
  apply: (history, at) => dispatch(history, command, args, { at, ...(group ? { group } : {}) }),
});

const name = fc.constantFrom("problems", "actor", "start", "exact", "other", "third");

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc
    .record({ id: name, x: fc.integer() })
    .map(({ id, x }) => step(addNode, { id, data: { kind: "dataset" }, position: [x, x] })),
  fc
    .record({ from: name, to: name })
    .map((edge) =>
      step(connect, { edge: { from: `${edge.from}.rows`, to: `${edge.to}.prompts` } }),
    ),
  fc
    .record({ id: name, x: fc.integer() })
    .map(({ id, x }) => step(moveNodes, { positions: { [id]: [x, 0] } }, "move")),
  fc.record({ id: name }).map(({ id }) => step(removeItems, { nodes: [id], edges: [] })),
  fc.record({ from: name, to: name }).map((names) => step(renameNode, { catalog, ...names })),
  fc
    .record({ id: name, value: fc.option(fc.integer(), { nil: undefined }) })
    .map(({ id, value }) =>
      step(setField, { node: id, path: ["training", "epochs"], value }, `field ${id}`),
    ),
  fc
    .record({ value: fc.integer() })
    .map(({ value }) => step(setValue, { path: ["run", "seed"], value }, "seed")),
);

describe("history", () => {
  it("undo of everything is the beginning, redo of everything the end", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(anyStep, fc.integer({ min: 0, max: 2000 })), { maxLength: 40 }),
        (steps) => {
          let history = startHistory(smallLoop());
          let at = 0;
          for (const [one, wait] of steps) {
            at += wait;
            history = one.apply(history, at);
          }
          const end = history.document;

          while (history.past.length > 0) history = undo(history);
          const beginning = history.document;
          while (history.future.length > 0) history = redo(history);

          expect(beginning).toEqual(smallLoop());
          expect(history.document).toEqual(end);
        },
      ),
    );
  });

  it("a burst in one group is one entry, a pause begins another", () => {
    const type = (history: History, value: number, at: number) =>
      dispatch(history, setField, { node: "actor", path: ["x"], value }, { group: "actor.x", at });

    let history = startHistory(smallLoop());
    history = type(history, 1, 0);
    history = type(history, 12, 200);
    history = type(history, 123, 200 + GROUP_MILLISECONDS + 1);

    expect(history.past).toHaveLength(2);
    expect(undo(history).document.nodes.actor?.x).toBe(12);
    expect(undo(undo(history)).document.nodes.actor).not.toHaveProperty("x");
  });

  it("what changes nothing leaves no entry", () => {
    const history = dispatch(startHistory(smallLoop()), moveNodes, {
      positions: { actor: [320, 0] },
    });

    expect(history.past).toEqual([]);
  });

  it("a new change after undo forgets what was undone", () => {
    let history = startHistory(smallLoop());
    history = dispatch(history, setValue, { path: ["run", "seed"], value: 1 });
    history = undo(history);
    history = dispatch(history, setValue, { path: ["run", "seed"], value: 2 });

    expect(history.future).toEqual([]);
    expect(redo(history)).toBe(history);
  });

  it("states have numbers that come back with undo and redo", () => {
    const first = startHistory(smallLoop());
    const second = dispatch(first, setValue, { path: ["run", "seed"], value: 1 });

    expect(undo(second).state).toBe(first.state);
    expect(redo(undo(second)).state).toBe(second.state);
  });
});
