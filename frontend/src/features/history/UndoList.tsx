import { useDocument, useOpenLoop } from "@/state/document/context";
import type { Entry } from "@/state/document/history";
import { classes } from "@/ui/classes";

/** What was done in this visit, the newest first; a press goes back, or forth, to where it was done. */
export function UndoList() {
  const { store } = useOpenLoop();
  const { past, future } = useDocument((state) => state.history);
  const isReadonly = useDocument((state) => state.isReadonly);
  const go = (steps: number) => {
    const { undo, redo } = store.getState();
    for (let step = 0; step < Math.abs(steps); step += 1) (steps < 0 ? undo : redo)();
  };
  const entries = [
    ...future.toReversed().map((entry, at) => ({ entry, steps: future.length - at })),
    ...past.toReversed().map((entry, at) => ({ entry, steps: -at })),
  ];
  if (entries.length === 0)
    return <p className="p-4 text-muted text-sm">Nothing was changed in this session yet.</p>;
  return (
    <ul aria-label="Edits of this session">
      {entries.map(({ entry, steps }) => (
        <Row
          key={entry.after}
          entry={entry}
          steps={steps}
          isDisabled={isReadonly}
          onGo={() => go(steps)}
        />
      ))}
      <li>
        <button
          type="button"
          disabled={isReadonly}
          aria-current={past.length === 0 || undefined}
          className="w-full px-3 py-2 text-left text-sm hover:bg-hover aria-current:bg-accent-soft"
          onClick={() => go(-past.length)}
        >
          As opened
        </button>
      </li>
    </ul>
  );
}

interface RowProps {
  entry: Entry;
  steps: number;
  isDisabled: boolean;
  onGo: () => void;
}

function Row({ entry, steps, isDisabled, onGo }: RowProps) {
  return (
    <li>
      <button
        type="button"
        disabled={isDisabled}
        aria-current={steps === 0 || undefined}
        className={classes(
          "flex w-full flex-col border-line border-b px-3 py-2 text-left hover:bg-hover aria-current:bg-accent-soft",
          steps > 0 && "text-faint",
        )}
        onClick={onGo}
      >
        <span className="text-sm">{steps > 0 ? `${entry.label} (undone)` : entry.label}</span>
        {entry.group ? (
          <span className="w-full truncate font-mono text-muted text-xs" title={entry.group}>
            {entry.group.replace(/^nodes\./, "")}
          </span>
        ) : null}
      </button>
    </li>
  );
}
