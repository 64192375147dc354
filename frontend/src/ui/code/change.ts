/** Text that takes the place of a piece of a text. Pure. */
export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** A change, and what is selected once it is made. */
export interface Edit extends Change {
  select: readonly [number, number];
}

export function changed(text: string, { from, to, insert }: Change): string {
  return text.slice(0, from) + insert + text.slice(to);
}

/** What takes a change back. */
export function inverse(text: string, { from, to, insert }: Change): Change {
  return { from, to: from + insert.length, insert: text.slice(from, to) };
}

/** Where a place is after a change; what stood inside of it moves to its end. */
export function moved(at: number, { from, to, insert }: Change): number {
  if (at < from) return at;
  return at > to ? at + insert.length - (to - from) : Math.min(at, from) + insert.length;
}

/** The one piece in which two texts differ, or null. */
export function smallestChange(before: string, after: string): Change | null {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < shorter - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end += 1;
  }
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}
