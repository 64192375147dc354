import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { portRef } from "@/document/edges";
import type { LoopDocument } from "@/document/types";
import { deepEqual } from "@/lib/paths";
import { setField, setValue } from "@/state/commands/fields";
import { moveNodes } from "@/state/commands/nodes";
import {
  dispatch,
  GROUP_MILLISECONDS,
  type History,
  redo,
  startHistory,
  undo,
} from "@/state/document/history";
import { smallLoop } from "../fixtures/loops";
import { anyStep, COMMAND_NAMES } from "./anyCommand";

/** JSON of the shape of a document, whose edges join nodes that are there. */
function checkShape(document: LoopDocument): void {
  const { nodes, edges, layout, notes = {} } = document;
  if (!deepEqual(JSON.parse(JSON.stringify(document)), document)) throw new Error("no JSON");
  for (const [id, node] of Object.entries(nodes))
    if (typeof node?.kind !== "string") throw new Error(`${id} is no node`);
  for (const { from, to } of edges)
    for (const end of [from, to])
      if (!(portRef(end).node in nodes)) throw new Error(`${from} -> ${to} leads nowhere`);
  for (const [x, y, ...more] of [
    ...Object.values(layout),
    ...Object.values(notes).flatMap(({ at, size }) => [at, size]),
  ])
    if (!Number.isInteger(x) || !Number.isInteger(y) || more.length > 0) throw new Error("place");
  for (const id of Object.keys(layout)) if (!(id in nodes)) throw new Error(`${id} has no box`);
}

describe("history", () => {
  it("every command has a part in what follows", () => {
    const folder = join(process.cwd(), "src/state/commands");
    const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), "utf-8"));
    const commands = [...texts.join().matchAll(/^export const (\w+) = defineCommand/gm)];

    expect(commands.length).toBeGreaterThan(20);
    expect(
      commands.map(([, name = ""]) => name).filter((name) => !COMMAND_NAMES.includes(name)),
    ).toEqual([]);
  });

  it("1,000 histories of any commands: undo of everything is the beginning, redo the end", () => {
    const done = new Set<string>();
    fc.assert(
      fc.property(fc.array(anyStep, { minLength: 1, maxLength: 12 }), (steps) => {
        let history = startHistory(smallLoop());
        let at = 0;
        for (const [step, wait] of steps) {
          at += wait;
          const next = step.apply(history, at);
          if (next !== history) done.add(step.command);
          history = next;
          checkShape(history.document);
        }
        const end = history.document;

        while (history.past.length > 0) {
          history = undo(history);
          checkShape(history.document);
        }
        const beginning = history.document;
        while (history.future.length > 0) history = redo(history);

        expect(beginning).toEqual(smallLoop());
        expect(history.document).toEqual(end);
      }),
      { numRuns: 1000 },
    );
    expect(COMMAND_NAMES.filter((command) => !done.has(command))).toEqual([]);
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
