import { useSync } from "@/document/context";
import { ExplainSheet } from "@/features/explain/ExplainSheet";
import { HistoryDialog } from "@/features/history/HistoryDialog";
import { NewLoopDialog } from "@/features/loops/NewLoopDialog";
import { GalleryDialog } from "@/features/presets/GalleryDialog";
import { ConfirmRunDialog } from "@/features/runs/ConfirmRunDialog";
import { Tour } from "@/features/tour/Tour";
import { useExplaining } from "@/session/explaining";
import { useTourState } from "@/session/tour";
import { Asked } from "./Asked";
import { ConflictDialog } from "./head/ConflictDialog";

/** What opens over a loop or a run. */
export function Dialogs() {
  const isConflict = useSync((state) => state.conflict !== null);
  const isExplained = useExplaining((state) => state.code !== null || state.node !== null);
  const isTour = useTourState((state) => state.step !== null);
  return (
    <>
      {isConflict ? <ConflictDialog /> : null}
      <Asked dialog="confirmRun">
        <ConfirmRunDialog />
      </Asked>
      <Asked dialog="gallery">
        <GalleryDialog />
      </Asked>
      <Asked dialog="history">
        <HistoryDialog />
      </Asked>
      <Asked dialog="newLoop">
        <NewLoopDialog />
      </Asked>
      {isExplained ? <ExplainSheet /> : null}
      {isTour ? <Tour /> : null}
    </>
  );
}
