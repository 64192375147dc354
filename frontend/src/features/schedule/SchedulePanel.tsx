import { Plus } from "lucide-react";
import { phaseList, schedule } from "@/document/phases";
import { isObject } from "@/lib/paths";
import { addPhase } from "@/state/commands/phases";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { Button } from "@/ui/Button";
import { EntryList } from "./EntryList";
import { firstPhase, newPhase } from "./newPhase";
import { PhaseItem } from "./PhaseItem";
import { phaseLength } from "./phaseText";

/** When what learns: the phases from left to right, and what reacts to metrics. */
export function SchedulePanel() {
  const { catalog, store } = useOpenLoop();
  const phases = useDocument((state) => phaseList(state.document, []));
  const whole = useDocument((state) => schedule(state.document));
  const isReadonly = useDocument((state) => state.isReadonly);

  const add = () => {
    const { document, dispatch } = store.getState();
    const at = [phases === null ? 1 : phases.length];
    const isFirst = phases === null && whole.steps === undefined && whole.epochs === undefined;
    dispatch(addPhase, {
      at,
      phase: newPhase(catalog, document),
      first: firstPhase(catalog, document),
    });
    useSelection.getState().select({ phase: isFirst ? [1] : at });
  };

  return (
    <div className="flex h-full min-h-0">
      <div className="flex min-w-0 flex-1 items-stretch gap-1 overflow-x-auto p-3">
        {phases === null ? (
          <article className="phase-card flex flex-col gap-1 p-2">
            <span className="font-semibold text-xs">whole run</span>
            <span className="text-muted text-xs">{phaseLength(whole)}</span>
            <span className="text-2xs text-faint">every connected teaching port</span>
          </article>
        ) : (
          phases.map((phase, index) =>
            isObject(phase) ? (
              <PhaseItem
                key={index}
                phase={phase}
                at={[index]}
                isLast={index === phases.length - 1}
              />
            ) : null,
          )
        )}
        {isReadonly ? null : (
          <Button
            look="quiet"
            size="small"
            icon={<Plus size={14} />}
            className="my-auto ml-1"
            onClick={add}
          >
            Phase
          </Button>
        )}
      </div>
      <div className="w-52 shrink-0 xl:w-72 overflow-y-auto border-line border-l p-3">
        <EntryList list="triggers" title="Triggers" hint="Act when a metric meets a condition." />
        <EntryList list="anneal" title="Annealing" hint="Change a value over the steps." />
      </div>
    </div>
  );
}
