import { Plus, Repeat } from "lucide-react";
import { entryField } from "@/catalog/scheduleSchema";
import { emptyValue } from "@/catalog/shapes";
import { phaseList, schedule } from "@/document/phases";
import { isObject } from "@/lib/paths";
import { setValue } from "@/state/commands/fields";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { select, useSelection } from "@/state/selection";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { Tooltip } from "@/ui/Tooltip";
import { insertPhase, insertTurns, taughtNodes } from "./newPhase";
import { PHASE_CARD, PhaseItem } from "./PhaseItem";
import { entryText, phaseLength } from "./phaseText";

export function SchedulePanel() {
  const open = useOpenLoop();
  const phases = useDocument((state) => phaseList(state.document, []));
  const whole = useDocument((state) => schedule(state.document));
  const isReadonly = useDocument((state) => state.isReadonly);
  const learners = useDocument((state) => taughtNodes(open.catalog, state.document).size);

  const add = () => {
    const at = [phases === null ? 1 : phases.length];
    const isFirst = phases === null && whole.steps === undefined && whole.epochs === undefined;
    insertPhase(open, at);
    select({ phase: isFirst ? [1] : at });
  };

  return (
    <div className="flex h-full min-h-0">
      <div className="flex min-w-0 flex-1 items-stretch gap-1 overflow-x-auto p-3">
        {phases === null ? (
          <article className={`${PHASE_CARD} gap-1 border-line p-2 hover:border-line-strong`}>
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
        {isReadonly || phases !== null || learners < 2 ? null : (
          <Tooltip text="A phase for each learner, one after the other, again and again">
            <Button
              look="quiet"
              size="small"
              icon={<Repeat size={14} />}
              className="my-auto"
              onClick={() => {
                insertTurns(open);
                select({ phase: [0, 0] });
              }}
            >
              Take turns
            </Button>
          </Tooltip>
        )}
      </div>
      <div className="w-52 shrink-0 xl:w-72 overflow-y-auto border-line border-l p-3">
        <EntryList list="triggers" title="Triggers" hint="Act when a metric meets a condition." />
        <EntryList list="anneal" title="Annealing" hint="Change a value over the steps." />
      </div>
    </div>
  );
}

const NONE: readonly never[] = [];

function EntryList({ list, title, hint }: { list: string; title: string; hint: string }) {
  const { catalog, store } = useOpenLoop();
  const entries = useDocument((state) => {
    const value = schedule(state.document)[list];
    return Array.isArray(value) ? value : NONE;
  });
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.entry);

  const add = () => {
    const field = entryField(catalog, list);
    const value = field ? emptyValue(field) : {};
    store.dispatch(
      setValue,
      { path: ["schedule", list, entries.length], value },
      { label: `Add to ${title.toLowerCase()}` },
    );
    select({ entry: { list, index: entries.length } });
  };
  return (
    <section aria-label={title} className="mb-3">
      <header className="flex h-6 items-center">
        <h2 className="flex-1 font-medium text-xs">{title}</h2>
        {isReadonly ? null : (
          <IconButton
            label={`Add to ${title.toLowerCase()}`}
            size="small"
            onClick={add}
            icon={<Plus size={14} />}
          />
        )}
      </header>
      {entries.length === 0 ? <p className="text-faint text-xs">{hint}</p> : null}
      <ul className="flex flex-col gap-1">
        {entries.map((entry, index) => {
          const text = isObject(entry) ? entryText(entry) : String(entry);
          const isChosen = chosen?.list === list && chosen.index === index;
          return (
            <li key={index}>
              <button
                type="button"
                title={text}
                aria-pressed={isChosen}
                className={classes(
                  "w-full truncate rounded-1 border px-2 py-1 text-left text-xs hover:bg-hover",
                  isChosen ? "border-accent" : "border-line",
                )}
                onClick={() => select({ entry: { list, index } })}
              >
                {text}
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
