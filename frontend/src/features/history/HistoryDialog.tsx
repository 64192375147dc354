import { useEffect, useState } from "react";
import { useOpenLoop } from "@/document/context";
import { useDialogs } from "@/session/dialogs";
import { Dialog } from "@/ui/Dialog";
import { Loading } from "@/ui/States";
import { History } from "./History";

/** The history of the open loop. What is on the screen is saved first: it is the newest version. */
export function HistoryDialog() {
  const { loopId, sync } = useOpenLoop();
  const isOpen = useDialogs((state) => state.open === "history");
  const show = useDialogs((state) => state.show);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    if (!isOpen || sync === null) return setReady(false);
    void sync.keep().then(() => setReady(true));
  }, [isOpen, sync]);

  return (
    <Dialog
      title="History"
      description="Edits of a sitting are one version. Versions with a name or a run stay for good; of the others the newest 50 do."
      isOpen={isOpen}
      onClose={() => show(null)}
      width="max-w-5xl"
    >
      {isReady && loopId ? (
        <History loopId={loopId} onRestored={() => show(null)} />
      ) : (
        <Loading label="Saving" />
      )}
    </Dialog>
  );
}
