import { ChevronLeft, ChevronRight, Repeat, X } from "lucide-react";
import { groupPhase } from "@/document/commands/groupPhase";
import { removePhase } from "@/document/commands/removePhase";
import { useOpenLoop } from "@/document/context";
import type { PhasePath } from "@/document/phases";
import { useSelection } from "@/session/selection";
import { IconButton } from "@/ui/IconButton";
import { useMovePhase } from "./useMovePhase";

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
