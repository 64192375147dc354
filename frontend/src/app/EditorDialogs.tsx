import { GalleryDialog } from "@/features/presets/GalleryDialog";
import { ConfirmRunDialog } from "@/features/runs/ConfirmRunDialog";
import { ConflictDialog } from "@/features/topbar/ConflictDialog";
import type { Action } from "./actions";
import { Commands } from "./Commands";
import { ShortcutSheet } from "./ShortcutSheet";

export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  return (
    <>
      <ConflictDialog />
      <ConfirmRunDialog />
      <GalleryDialog />
      <ShortcutSheet actions={actions} />
      <Commands actions={actions} />
    </>
  );
}
