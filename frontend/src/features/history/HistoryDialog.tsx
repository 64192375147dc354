import { type ReactNode, useEffect, useState } from "react";
import { showDialog, useDialogs } from "@/state/dialogs";
import { useDocument, useOpenLoop } from "@/state/document/context";
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
          isNow={steps === 0}
          className={classes("border-line border-b", steps > 0 && "text-faint")}
          onGo={() => go(steps)}
        >
          <span className="text-sm">{steps > 0 ? `${entry.label} (undone)` : entry.label}</span>
          {entry.group ? (
            <span className="w-full truncate font-mono text-muted text-xs" title={entry.group}>
              {entry.group.replace(/^nodes\./, "")}
            </span>
          ) : null}
        </Row>
      ))}
      <Row isNow={past.length === 0} className="text-sm" onGo={() => go(-past.length)}>
        As opened
      </Row>
    </ul>
  );
}

interface RowProps {
  isNow: boolean;
  className: string;
  onGo: () => void;
  children: ReactNode;
}

function Row({ isNow, className, onGo, children }: RowProps) {
  const isReadonly = useDocument((state) => state.isReadonly);
  return (
    <li>
      <button
        type="button"
        disabled={isReadonly}
        aria-current={isNow || undefined}
        className={`flex w-full flex-col px-3 py-2 text-left hover:bg-hover aria-current:bg-accent-soft ${className}`}
        onClick={onGo}
      >
        {children}
      </button>
    </li>
  );
}
