/** A phase steps out of its group, to the place before or behind it. Pure. */
import type { JsonObject } from "@/api/types";
import { type PhasePath, phaseAt, phaseList } from "@/document/phases";
import type { LoopDocument } from "@/document/types";

interface Left {
  /** Path of the list that the group is in. */
  outside: PhasePath;
  phases: JsonObject[];
  /** Where the phase is then. */
  at: PhasePath;
}

export function leaveGroup(document: LoopDocument, at: PhasePath, by: -1 | 1): Left | null {
  const inside = at.slice(0, -1);
  const outside = inside.slice(0, -1);
  const group = phaseAt(document, inside);
  const phase = phaseAt(document, at);
  const list = phaseList(document, outside);
  const index = inside.at(-1);
  if (!group || !phase || !list || index === undefined) return null;
  const rest = (phaseList(document, inside) ?? []).filter((one) => one !== phase);
  // A group that would be empty goes.
  const left = rest.length === 0 ? [] : [{ ...group, phases: rest }];
  const placed = by === -1 ? [phase, ...left] : [...left, phase];
  return {
    outside,
    phases: list.toSpliced(index, 1, ...placed),
    at: [...outside, index + placed.indexOf(phase)],
  };
}
