import { defineCommand } from "../command";
import { type PhasePath, phaseAt, phaseList } from "../phases";

/** Moves a phase into the group that stands left or right of it. */
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
