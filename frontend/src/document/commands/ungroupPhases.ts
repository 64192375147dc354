import { isObject } from "@/lib/paths";
import { defineCommand } from "../command";
import { type PhasePath, phaseAt, phaseList } from "../phases";

/** Takes the phases of a group out of it. */
export const ungroupPhases = defineCommand<{ at: PhasePath }>("Ungroup phases", (draft, { at }) => {
  const list = phaseList(draft, at.slice(0, -1));
  const group = phaseAt(draft, at);
  if (!list || !group || !Array.isArray(group.phases)) return;
  list.splice(at.at(-1) ?? 0, 1, ...group.phases.filter(isObject));
});
