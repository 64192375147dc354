import { useEffect, useState } from "react";
import { useDialogs } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { Dialog } from "@/ui/Dialog";
import { Segmented } from "@/ui/Segmented";
import { Loading } from "@/ui/States";
import { History } from "./History";
import { UndoList } from "./UndoList";

type Kind = "versions" | "visit";
const KINDS: readonly { value: Kind; label: string }[] = [
  { value: "versions", label: "Versions" },
  { value: "visit", label: "This session" },
];

/** The history of the open loop. What is on the screen is saved first: it is the newest version. */
export function HistoryDialog() {
  const { loopId, sync } = useOpenLoop();
  const isOpen = useDialogs((state) => state.open === "history");
  const show = useDialogs((state) => state.show);
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
      onClose={() => show(null)}
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
        <History loopId={loopId} onRestored={() => show(null)} />
      ) : (
        <Loading label="Saving" />
      )}
    </Dialog>
  );
}
