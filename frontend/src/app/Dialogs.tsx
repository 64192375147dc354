import { useLocation } from "wouter";
import { ExplainSheet } from "@/features/explain/ExplainSheet";
import { HistoryDialog } from "@/features/history/HistoryDialog";
import { MergeChoices } from "@/features/history/MergeChoices";
import { JobFileDialog } from "@/features/loops/JobFileDialog";
import { NewLoopDialog } from "@/features/loops/NewLoopDialog";
import { SaveBlockDialog } from "@/features/palette/SaveBlockDialog";
import { Gallery } from "@/features/presets/Gallery";
import { ConfirmRunDialog } from "@/features/runs/start/ConfirmRunDialog";
import { TryValuesDialog } from "@/features/runs/sweep/TryValuesDialog";
import { Tour } from "@/features/tour/Tour";
import { formatAgo } from "@/lib/format";
import { showDialog, useDialogs, useExplaining } from "@/state/dialogs";
import { useOpenLoop, useSync } from "@/state/document/context";
import { useTourState } from "@/state/preferences";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { DialogOnce } from "./MountOnce";

export function Dialogs() {
  const isConflict = useSync((state) => state.conflict !== null);
  const isExplained = useExplaining((state) => state.code !== null || state.node !== null);
  const isTour = useTourState((state) => state.step !== null);
  return (
    <>
      {isConflict ? <ConflictDialog /> : null}
      <DialogOnce name="confirmRun" of={ConfirmRunDialog} />
      <DialogOnce name="gallery" of={GalleryDialog} />
      <DialogOnce name="history" of={HistoryDialog} />
      <DialogOnce name="jobFile" of={JobFileDialog} />
      <DialogOnce name="newLoop" of={NewLoopDialog} />
      <DialogOnce name="saveBlock" of={SaveBlockDialog} />
      <DialogOnce name="tryValues" of={TryValuesDialog} />
      {isExplained ? <ExplainSheet /> : null}
      {isTour ? <Tour /> : null}
    </>
  );
}

function GalleryDialog() {
  const isOpen = useDialogs((state) => state.open === "gallery");
  return (
    <Dialog
      title="Presets"
      description="Open any preset; your first change saves it as your own loop. The loop that is open now stays as it is."
      isOpen={isOpen}
      onClose={() => showDialog(null)}
      width="max-w-5xl"
    >
      <Gallery onOpened={() => showDialog(null)} />
    </Dialog>
  );
}

function ConflictDialog() {
  const { sync } = useOpenLoop();
  const conflict = useSync((state) => state.conflict);
  const { isBusy, attempt: act } = useAttempt();
  const [, navigate] = useLocation();
  if (!sync || !conflict) return null;
  const openCopy = async () => navigate(`/loops/${(await sync.openCopy()).id}`);
  const button = (label: string, choose: Parameters<typeof act>[0]) => (
    <Button disabled={isBusy} onClick={() => void act(choose)}>
      {label}
    </Button>
  );
  return (
    <Dialog
      title="This loop was changed elsewhere"
      description={`Another tab or person saved “${conflict.name}” ${formatAgo(conflict.updated_at)}. Your changes are not saved yet.`}
      isOpen
      isBlocking
      width="max-w-2xl"
      onClose={() => {}}
      footer={
        <>
          {button("Open mine as a copy", openCopy)}
          {button("Take theirs", () => sync.takeTheirs())}
          {button("Keep mine", () => sync.keepMine())}
        </>
      }
    >
      <MergeChoices key={conflict.revision} />
      <ul className="list-disc space-y-1 border-line border-t pt-3 pl-5 text-muted text-sm">
        <li>
          <b className="text-text">Keep mine</b> saves your version over theirs. Theirs stays in the
          loop's versions.
        </li>
        <li>
          <b className="text-text">Take theirs</b> shows their version here. Undo brings yours back.
        </li>
        <li>
          <b className="text-text">Open mine as a copy</b> keeps both, as two loops.
        </li>
      </ul>
    </Dialog>
  );
}
