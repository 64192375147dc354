import fc from "fast-check";
import { expect, it } from "vitest";
import { type Change, changed } from "@/ui/code/change";
import { History } from "@/ui/code/history";

/** A place as a share of the text, how much goes, and what comes. */
const edit = (letters: string) =>
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    gone: fc.nat({ max: 4 }),
    insert: fc.string({ unit: fc.constantFrom(...letters), maxLength: 4 }),
    pause: fc.constantFrom(0, 1000),
  });
type Asked = { at: number; gone: number; insert: string };

const START = "one\ntwo\nthree\n";

function changeOf(text: string, { at, gone, insert }: Asked): Change {
  const from = Math.floor(at * text.length);
  return { from, to: Math.min(text.length, from + gone), insert };
}

function undone(history: History, text: string, step: "undo" | "redo" = "undo"): string {
  let after = text;
  for (let change = history[step](after); change; change = history[step](after))
    after = changed(after, change);
  return after;
}

it("all that was typed is taken back, and made again", () => {
  fc.assert(
    fc.property(fc.array(edit("ab\n"), { maxLength: 30 }), (typed) => {
      const history = new History();
      let text = START;
      let time = 0;
      for (const one of typed) {
        const change = changeOf(text, one);
        time += one.pause;
        history.add(text, change, change.insert === "" ? "deleted" : "typed", time);
        text = changed(text, change);
      }

      const before = undone(history, text);

      expect(before).toBe(START);
      expect(undone(history, before, "redo")).toBe(text);
    }),
  );
});

it("what came from outside stays when all that was typed is taken back", () => {
  const step = fc.oneof(
    edit("ab").map((one) => ({ ...one, isTyped: true })),
    edit("XY").map((one) => ({ ...one, gone: 0, isTyped: false })),
  );
  const ofOutside = (text: string) => text.replaceAll(/[^XY]/g, "");
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const history = new History();
      let text = START;
      for (const one of steps) {
        // Who types over what came from outside has taken it away.
        const wanted = changeOf(text, one);
        const isOver = /[XY]/.test(text.slice(wanted.from, wanted.to));
        const change = isOver ? { ...wanted, to: wanted.from } : wanted;
        if (one.isTyped) history.add(text, change, "whole", 0);
        else history.pass(change);
        text = changed(text, change);
      }

      expect(ofOutside(undone(history, text))).toBe(ofOutside(text));
    }),
  );
});
