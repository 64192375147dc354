import { defineCommand } from "../command";
import { type PhasePath, phaseAt, phaseList } from "../phases";

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
