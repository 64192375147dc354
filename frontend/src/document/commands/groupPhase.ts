import { defineCommand } from "../command";
import { type PhasePath, phaseList } from "../phases";

/** Puts a phase into a group that repeats. */
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
