import { Plus } from "lucide-react";
import { entryField } from "@/catalog/scheduleSchema";
import { emptyValue } from "@/catalog/shapes";
import { schedule } from "@/document/phases";
import { isObject } from "@/lib/paths";
import { setValue } from "@/state/commands/fields";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { entryText } from "./phaseText";

const NONE: readonly never[] = [];

interface EntryListProps {
  /** Key of the schedule. */
  list: string;
  title: string;
  hint: string;
}

/** Triggers or annealings, a line each; pressed, their settings open. */
export function EntryList({ list, title, hint }: EntryListProps) {
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
    store
      .getState()
      .dispatch(
        setValue,
        { path: ["schedule", list, entries.length], value },
        { label: `Add to ${title.toLowerCase()}` },
      );
    useSelection.getState().select({ entry: { list, index: entries.length } });
  };
  return (
    <section aria-label={title} className="mb-3">
      <header className="flex h-6 items-center">
        <h2 className="flex-1 font-medium text-xs">{title}</h2>
        {isReadonly ? null : (
          <IconButton label={`Add to ${title.toLowerCase()}`} size="small" onClick={add}>
            <Plus size={14} />
          </IconButton>
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
                onClick={() => useSelection.getState().select({ entry: { list, index } })}
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
