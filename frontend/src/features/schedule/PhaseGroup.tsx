import { Plus, Repeat, Ungroup } from "lucide-react";
import type { JsonObject } from "@/api/types";
import type { PhasePath } from "@/document/phases";
import { isObject } from "@/lib/paths";
import { ungroupPhases } from "@/state/commands/phases";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { clearSelection, select, useSelection } from "@/state/selection";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { insertPhase } from "./newPhase";
import { PhaseItem } from "./PhaseItem";

export function PhaseGroup({ phase, at }: { phase: JsonObject; at: PhasePath }) {
  const open = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.phase);
  const isChosen = chosen?.join() === at.join();
  const phases = Array.isArray(phase.phases) ? phase.phases.filter(isObject) : [];

  const add = () => {
    const place = [...at, phases.length];
    insertPhase(open, place);
    select({ phase: place });
  };
  return (
    <section
      aria-label={`Group, ${String(phase.repeat ?? 1)} times`}
      className={classes("phase-group", isChosen && "phase-group-chosen")}
    >
      <header className="flex h-7 items-center gap-1 px-1">
        <button
          type="button"
          className="flex min-w-0 items-center gap-1 rounded-1 px-1 text-xs hover:bg-hover"
          aria-pressed={isChosen}
          onClick={() => select({ phase: at })}
        >
          <Repeat size={12} className="text-accent-text" aria-hidden="true" />
          <b className="tabular">× {String(phase.repeat ?? 1)}</b>
          {phase.name ? <span className="truncate text-muted">{String(phase.name)}</span> : null}
        </button>
        <span className="flex-1" />
        {isReadonly ? null : (
          <>
            <IconButton
              label="Add a phase to the group"
              size="tiny"
              onClick={add}
              icon={<Plus size={13} />}
            />
            <IconButton
              label="Ungroup the phases"
              size="tiny"
              onClick={() => {
                open.store.dispatch(ungroupPhases, { at });
                clearSelection();
              }}
              icon={<Ungroup size={13} />}
            />
          </>
        )}
      </header>
      <div className="flex min-h-0 flex-1 items-stretch gap-1 px-1 pb-1">
        {phases.map((child, index) => (
          <PhaseItem
            key={index}
            phase={child}
            at={[...at, index]}
            isLast={index === phases.length - 1}
          />
        ))}
      </div>
    </section>
  );
}
