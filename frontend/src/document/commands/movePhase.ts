import { defineCommand } from "../command";
import { type PhasePath, phaseList } from "../phases";

interface MovePhase {
  at: PhasePath;
  by: -1 | 1;
}

/** One place to the left or right among its siblings. */
export const movePhase = defineCommand<MovePhase>("Move phase", (draft, { at, by }) => {
  const list = phaseList(draft, at.slice(0, -1));
  const index = at.at(-1) ?? 0;
  const target = index + by;
  if (!list || target < 0 || target >= list.length) return;
  const [phase] = list.splice(index, 1);
  if (phase) list.splice(target, 0, phase);
});
