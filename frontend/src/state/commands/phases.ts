import type { JsonObject } from "@/api/types";
import { ensurePhases, type PhasePath, phaseAt, phaseList } from "@/document/phases";
import type { LoopDocument } from "@/document/types";
import { isObject } from "@/lib/paths";
import { defineCommand } from "../document/command";

/** The list in which a phase stands, and where; null: there is none. */
function seatOf(draft: LoopDocument, at: PhasePath) {
  const list = phaseList(draft, at.slice(0, -1));
  return list && { list, index: at.at(-1) ?? 0 };
}

interface AddPhase {
  at: PhasePath;
  phase: JsonObject;
  /** Stands for what runs now, where the loop has no phases yet. */
  first: JsonObject;
}

export const addPhase = defineCommand<AddPhase>("Add phase", (draft, { at, phase, first }) => {
  ensurePhases(draft, first);
  const list = phaseList(draft, at.slice(0, -1));
  list?.splice(at.at(-1) ?? list.length, 0, phase);
});

export const removePhase = defineCommand<{ at: PhasePath }>("Remove phase", (draft, { at }) => {
  const seat = seatOf(draft, at);
  seat?.list.splice(seat.index, 1);
  const parent = at.slice(0, -1);
  if (seat?.list.length !== 0 || parent.length === 0 || !phaseAt(draft, parent)) return;
  const group = seatOf(draft, parent);
  group?.list.splice(group.index, 1);
});

interface MovePhase {
  at: PhasePath;
  by: -1 | 1;
}

export const movePhase = defineCommand<MovePhase>("Move phase", (draft, { at, by }) => {
  const { list, index } = seatOf(draft, at) ?? { list: [], index: 0 };
  const target = index + by;
  if (target < 0 || target >= list.length) return;
  const [phase] = list.splice(index, 1);
  if (phase) list.splice(target, 0, phase);
});

export const groupPhase = defineCommand<{ at: PhasePath; repeat: number }>(
  "Repeat phase",
  (draft, { at, repeat }) => {
    const seat = seatOf(draft, at);
    const phase = seat?.list[seat.index];
    if (phase && at.length === 1) seat.list[seat.index] = { repeat, phases: [phase] };
  },
);

export const ungroupPhases = defineCommand<{ at: PhasePath }>("Ungroup phases", (draft, { at }) => {
  const seat = seatOf(draft, at);
  const phases = phaseAt(draft, at)?.phases;
  if (Array.isArray(phases)) seat?.list.splice(seat.index, 1, ...phases.filter(isObject));
});

export const mergePhases = defineCommand<{ at: PhasePath; side: -1 | 1 }>(
  "Move into group",
  (draft, { at, side }) => {
    const { list, index } = seatOf(draft, at) ?? { list: [], index: 0 };
    const phases = list[index + side]?.phases;
    const phase = list[index];
    if (!phase || !Array.isArray(phases)) return;
    if (side === -1) phases.push(phase);
    else phases.unshift(phase);
    list.splice(index, 1);
  },
);

/** One group of phases in the place of a schedule without any; how long that was goes with it. */
export const takeTurns = defineCommand<{ group: JsonObject }>("Take turns", (draft, { group }) => {
  const own = isObject(draft.rest.schedule) ? draft.rest.schedule : {};
  const { steps: _, epochs: __, ...rest } = own;
  draft.rest.schedule = { ...rest, phases: [group] };
});
