/**
 * What was typed, to be taken back step by step. What came from outside is taken back where it came from:
 * steps move out of its way, and one that it wrote over is gone.
 */
import { type Change, inverse } from "./change";

/** Milliseconds without a key, after which another step begins. */
const PAUSE = 500;
const KEPT = 500;

export type Way = "typed" | "deleted" | "whole";

export class History {
  /** Ready to be made, the last of each first of all. */
  private undone: Change[] = [];
  private done: Change[] = [];
  private last: { way: Way; time: number } | null = null;

  /** Remembers a change before it is made. */
  add(text: string, change: Change, way: Way, time: number): void {
    const back = inverse(text, change);
    const before = this.done.at(-1);
    const isSame = this.last?.way === way && time - this.last.time < PAUSE && way !== "whole";
    const joined = isSame && before ? join(before, change, back) : null;
    if (joined) this.done[this.done.length - 1] = joined;
    else this.done.push(back);
    if (this.done.length > KEPT) this.done.shift();
    this.undone = [];
    this.last = { way, time };
  }

  undo = (text: string) => this.step(text, this.done, this.undone);
  redo = (text: string) => this.step(text, this.undone, this.done);

  /** A change from outside is made. */
  pass(change: Change): void {
    this.done = passed(this.done, change);
    this.undone = passed(this.undone, change);
    this.last = null;
  }

  private step(text: string, from: Change[], to: Change[]): Change | null {
    const change = from.pop();
    if (!change) return null;
    to.push(inverse(text, change));
    this.last = null;
    return change;
  }
}

/** One step of two that touch, or null. */
function join(before: Change, change: Change, back: Change): Change | null {
  const grown = change.insert.length - back.insert.length;
  if (change.from >= before.from && change.to <= before.to)
    return { ...before, to: before.to + grown };
  const to = Math.max(before.to, change.to) + grown;
  if (change.to === before.from)
    return { from: change.from, to, insert: back.insert + before.insert };
  if (change.from === before.to) return { ...before, to, insert: before.insert + back.insert };
  return null;
}

/** Steps of which each begins where the one above it ends, moved out of the way of a change. */
function passed(steps: readonly Change[], outside: Change): Change[] {
  const kept: Change[] = [];
  let other = { from: outside.from, to: outside.to, size: outside.insert.length };
  for (const step of steps.toReversed()) {
    const grown = step.insert.length - (step.to - step.from);
    const otherGrown = other.size - (other.to - other.from);
    if (step.to <= other.from && !(step.from === other.to)) {
      kept.push(step);
      other = { ...other, from: other.from + grown, to: other.to + grown };
    } else if (step.from >= other.to) {
      kept.push({ ...step, from: step.from + otherGrown, to: step.to + otherGrown });
    } else {
      // Over one another: to those below, both are one change.
      const to = Math.max(step.to, other.to);
      const from = Math.min(step.from, other.from);
      other = { from, to: to + grown, size: to - from + otherGrown };
    }
  }
  return kept.reverse();
}
