import { useEffect, useState } from "react";
import { showDialog, useDialogs } from "@/state/dialogs";
import { useDocument, useOpenLoop } from "@/state/document/context";
import type { Entry } from "@/state/document/history";
import { classes } from "@/ui/classes";
import { Dialog } from "@/ui/Dialog";
import { Segmented } from "@/ui/Segmented";
import { Loading } from "@/ui/States";
import { History } from "./History";

type Kind = "versions" | "visit";
const KINDS: readonly { value: Kind; label: string }[] = [
  { value: "versions", label: "Versions" },
  { value: "visit", label: "This session" },
];

/** The history of the open loop. What is on the screen is saved first: it is the newest version. */
export function HistoryDialog() {
  const { loopId, sync } = useOpenLoop();
  const isOpen = useDialogs((state) => state.open === "history");
  const [isReady, setReady] = useState(false);
  const [kind, setKind] = useState<Kind>("versions");
  useEffect(() => {
    if (!isOpen || sync === null) return setReady(false);
    void sync.keep().then(() => setReady(true));
  }, [isOpen, sync]);

  return (
    <Dialog
      title="History"
      description="The edits of one session are one version. Versions with a name or a run are kept; of the others, the newest 50."
      isOpen={isOpen}
      onClose={() => showDialog(null)}
      width="max-w-5xl"
    >
      <div className="mb-2">
        <Segmented label="Which history" value={kind} options={KINDS} onChange={setKind} />
      </div>
      {kind === "visit" ? (
        <div className="h-[60vh] overflow-y-auto rounded-2 border border-line">
          <UndoList />
        </div>
      ) : isReady && loopId ? (
        <History loopId={loopId} onRestored={() => showDialog(null)} />
      ) : (
        <Loading label="Saving" />
      )}
    </Dialog>
  );
}

export function UndoList() {
  const { store } = useOpenLoop();
  const { past, future } = useDocument((state) => state.history);
  const isReadonly = useDocument((state) => state.isReadonly);
  const go = (steps: number) => {
    for (let step = 0; step < Math.abs(steps); step += 1) (steps < 0 ? store.undo : store.redo)();
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
