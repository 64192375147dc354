import { mergePhases } from "@/document/commands/mergePhases";
import { movePhase } from "@/document/commands/movePhase";
import { setValue } from "@/document/commands/setValue";
import { useOpenLoop } from "@/document/context";
import { isGroup, type PhasePath, phaseAt, phaseList, phaseSpecPath } from "@/document/phases";
import { useSelection } from "@/session/selection";
import { leaveGroup } from "./leaveGroup";

/**
 * Moves a phase one place to the left or right, as it is seen: into a group that stands there, through it, and
 * out of it on the other side. The phase stays selected.
 */
export function useMovePhase(at: PhasePath): (by: -1 | 1) => void {
  const { store } = useOpenLoop();
  return (by) => {
    const { document, dispatch } = store.getState();
    const parent = at.slice(0, -1);
    const target = [...parent, (at.at(-1) ?? 0) + by];
    const next = phaseAt(document, target);
    const select = (phase: PhasePath) => useSelection.getState().select({ phase });
    if (next !== null && at.length === 1 && isGroup(next)) {
      dispatch(mergePhases, { at, side: by });
      select(by === 1 ? [...at, 0] : [...target, phaseList(document, target)?.length ?? 0]);
    } else if (next !== null) {
      dispatch(movePhase, { at, by });
      select(target);
    } else {
      const left = leaveGroup(document, at, by);
      if (!left) return;
      const path = [...phaseSpecPath(left.outside), "phases"];
      dispatch(setValue, { path, value: left.phases }, { label: "Move out of group" });
      select(left.at);
    }
  };
}
