import { HistoryDialog } from "@/features/history/HistoryDialog";
import { NewLoopDialog } from "@/features/loops/NewLoopDialog";
import { GalleryDialog } from "@/features/presets/GalleryDialog";
import { ConfirmRunDialog } from "@/features/runs/ConfirmRunDialog";
import type { Action } from "@/session/actions";
import { Commands } from "./Commands";
import { ConflictDialog } from "./head/ConflictDialog";
import { ShortcutSheet } from "./ShortcutSheet";

export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  return (
    <>
      <ConflictDialog />
      <ConfirmRunDialog />
      <GalleryDialog />
      <HistoryDialog />
      <NewLoopDialog />
      <ShortcutSheet actions={actions} />
      <Commands actions={actions} />
    </>
  );
}
