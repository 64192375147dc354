import { HistoryDialog } from "@/features/history/HistoryDialog";
import { NewLoopDialog } from "@/features/loops/NewLoopDialog";
import { ConfirmRunDialog } from "@/features/runs/ConfirmRunDialog";
import type { Action } from "@/session/actions";
import { Commands } from "./Commands";
import { ConflictDialog } from "./head/ConflictDialog";
import { OnDemand } from "./OnDemand";
import { ShortcutSheet } from "./ShortcutSheet";

export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  return (
    <>
      <ConflictDialog />
      <ConfirmRunDialog />
      <HistoryDialog />
      <NewLoopDialog />
      <ShortcutSheet actions={actions} />
      <Commands actions={actions} />
      <OnDemand />
    </>
  );
}
