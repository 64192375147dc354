import { lazy, Suspense } from "react";
import { GalleryDialog } from "@/features/presets/GalleryDialog";
import { ConfirmRunDialog } from "@/features/runs/ConfirmRunDialog";
import { ConflictDialog } from "@/features/topbar/ConflictDialog";
import { useDialogs } from "@/session/dialogs";
import type { Action } from "./actions";
import { ShortcutSheet } from "./ShortcutSheet";

const CommandPalette = lazy(() =>
  import("./CommandPalette").then((module) => ({ default: module.CommandPalette })),
);

export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  const open = useDialogs((state) => state.open);
  return (
    <>
      <ConflictDialog />
      <ConfirmRunDialog />
      <GalleryDialog />
      <ShortcutSheet actions={actions} />
      <Suspense>{open === "commands" ? <CommandPalette actions={actions} /> : null}</Suspense>
    </>
  );
}
