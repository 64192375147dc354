import { ExplainSheet } from "@/features/explain/ExplainSheet";
import { HistoryDialog } from "@/features/history/HistoryDialog";
import { NewLoopDialog } from "@/features/loops/NewLoopDialog";
import { Gallery } from "@/features/presets/Gallery";
import { ConfirmRunDialog } from "@/features/runs/start/ConfirmRunDialog";
import { Tour } from "@/features/tour/Tour";
import { useDialogs, useExplaining } from "@/state/dialogs";
import { useSync } from "@/state/document/context";
import { useTourState } from "@/state/preferences";
import { Dialog } from "@/ui/Dialog";
import { ConflictDialog } from "./head/ConflictDialog";
import { DialogOnce } from "./MountOnce";

/** What opens over a loop or a run. */
export function Dialogs() {
  const isConflict = useSync((state) => state.conflict !== null);
  const isExplained = useExplaining((state) => state.code !== null || state.node !== null);
  const isTour = useTourState((state) => state.step !== null);
  return (
    <>
      {isConflict ? <ConflictDialog /> : null}
      <DialogOnce dialog="confirmRun">
        <ConfirmRunDialog />
      </DialogOnce>
      <DialogOnce dialog="gallery">
        <GalleryDialog />
      </DialogOnce>
      <DialogOnce dialog="history">
        <HistoryDialog />
      </DialogOnce>
      <DialogOnce dialog="newLoop">
        <NewLoopDialog />
      </DialogOnce>
      {isExplained ? <ExplainSheet /> : null}
      {isTour ? <Tour /> : null}
    </>
  );
}

function GalleryDialog() {
  const isOpen = useDialogs((state) => state.open === "gallery");
  const show = useDialogs((state) => state.show);
  return (
    <Dialog
      title="Presets"
      description="Open any preset; your first change saves it as your own loop. The loop that is open now stays as it is."
      isOpen={isOpen}
      onClose={() => show(null)}
      width="max-w-5xl"
    >
      <Gallery onOpened={() => show(null)} />
    </Dialog>
  );
}
