import type { JsonObject } from "@/api/types";
import { ensurePhases, type PhasePath, phaseAt, phaseList } from "@/document/phases";
import { isObject } from "@/lib/paths";
import { defineCommand } from "../document/command";

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
  const list = phaseList(draft, at.slice(0, -1));
  if (!list) return;
  list.splice(at.at(-1) ?? 0, 1);
  if (list.length > 0) return;
  const parent = at.slice(0, -1);
  if (parent.length > 0 && phaseAt(draft, parent)) {
    phaseList(draft, parent.slice(0, -1))?.splice(parent.at(-1) ?? 0, 1);
  }
});

interface MovePhase {
  at: PhasePath;
  by: -1 | 1;
}

export const movePhase = defineCommand<MovePhase>("Move phase", (draft, { at, by }) => {
  const list = phaseList(draft, at.slice(0, -1));
  const index = at.at(-1) ?? 0;
  const target = index + by;
  if (!list || target < 0 || target >= list.length) return;
  const [phase] = list.splice(index, 1);
  if (phase) list.splice(target, 0, phase);
});

export const groupPhase = defineCommand<{ at: PhasePath; repeat: number }>(
  "Repeat phase",
  (draft, { at, repeat }) => {
    const list = phaseList(draft, at.slice(0, -1));
    const index = at.at(-1) ?? 0;
    const phase = list?.[index];
    if (!list || !phase || at.length > 1) return;
    list[index] = { repeat, phases: [phase] };
  },
);

export const ungroupPhases = defineCommand<{ at: PhasePath }>("Ungroup phases", (draft, { at }) => {
  const list = phaseList(draft, at.slice(0, -1));
  const group = phaseAt(draft, at);
  if (!list || !group || !Array.isArray(group.phases)) return;
  list.splice(at.at(-1) ?? 0, 1, ...group.phases.filter(isObject));
});

export const mergePhases = defineCommand<{ at: PhasePath; side: -1 | 1 }>(
  "Move into group",
  (draft, { at, side }) => {
    const list = phaseList(draft, at.slice(0, -1));
    const index = at.at(-1) ?? 0;
    const group = phaseAt(draft, [...at.slice(0, -1), index + side]);
    const phase = list?.[index];
    if (!list || !phase || !group || !Array.isArray(group.phases)) return;
    if (side === -1) group.phases.push(phase);
    else group.phases.unshift(phase);
    list.splice(index, 1);
  },
);
