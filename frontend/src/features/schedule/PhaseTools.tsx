import { ChevronLeft, ChevronRight, Repeat, X } from "lucide-react";
import type { JsonObject } from "@/api/types";
import { isGroup, type PhasePath, phaseAt, phaseList, phaseSpecPath } from "@/document/phases";
import type { LoopDocument } from "@/document/types";
import { setValue } from "@/state/commands/fields";
import { groupPhase, mergePhases, movePhase, removePhase } from "@/state/commands/phases";
import { useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { IconButton } from "@/ui/IconButton";

interface PhaseToolsProps {
  name: string;
  at: PhasePath;
  isLast: boolean;
}

/** Moves, repeats and removes a phase. */
export function PhaseTools({ name, at, isLast }: PhaseToolsProps) {
  const { store } = useOpenLoop();
  const move = useMovePhase(at);
  const isTop = at.length === 1;
  return (
    <span className="phase-card-tools">
      <IconButton
        label={`Move ${name} left`}
        size="small"
        className="size-5"
        disabled={isTop && at[0] === 0}
        onClick={() => move(-1)}
      >
        <ChevronLeft size={13} />
      </IconButton>
      <IconButton
        label={`Move ${name} right`}
        size="small"
        className="size-5"
        disabled={isTop && isLast}
        onClick={() => move(1)}
      >
        <ChevronRight size={13} />
      </IconButton>
      {isTop ? (
        <IconButton
          label={`Repeat ${name}`}
          size="small"
          className="size-5"
          onClick={() => {
            store.getState().dispatch(groupPhase, { at, repeat: 2 });
            useSelection.getState().select({ phase: at });
          }}
        >
          <Repeat size={12} />
        </IconButton>
      ) : null}
      <IconButton
        label={`Remove ${name}`}
        size="small"
        className="size-5"
        onClick={() => {
          store.getState().dispatch(removePhase, { at });
          useSelection.getState().clear();
        }}
      >
        <X size={13} />
      </IconButton>
    </span>
  );
}

/**
 * Moves a phase one place to the left or right, as it is seen: into a group that stands there, through it, and
 * out of it on the other side. The phase stays selected.
 */
function useMovePhase(at: PhasePath): (by: -1 | 1) => void {
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

/** A phase steps out of its group, to the place before or behind it. Pure. */
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
