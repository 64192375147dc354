import { lazy, Suspense } from "react";
import type { Action } from "@/state/actions";
import { type DialogName, useDialogs, useExplaining } from "@/state/dialogs";
import { useSync } from "@/state/document/context";
import { useTourState } from "@/state/preferences";
import { CommandPalette } from "./CommandPalette";
import { DialogOnce, MountOnce } from "./MountOnce";
import { ShortcutSheet } from "./ShortcutSheet";

/** What opens over a page with a loop or a run. */
export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  return (
    <>
      <DialogOnce dialog="shortcuts">
        <ShortcutSheet actions={actions} />
      </DialogOnce>
      <Commands actions={actions} />
      <OnDemand />
    </>
  );
}

function Commands({ actions }: { actions: readonly Action[] }) {
  const isOpen = useDialogs((state) => state.open === "commands");
  return isOpen ? <CommandPalette actions={actions} /> : null;
}

const Dialogs = lazy(() => import("./Dialogs").then((module) => ({ default: module.Dialogs })));
const NAMES: readonly DialogName[] = ["confirmRun", "gallery", "history", "newLoop"];

/** Dialogs, loaded when the first one is opened. */
function OnDemand() {
  const isDialog = useDialogs((state) => NAMES.includes(state.open));
  const isConflict = useSync((state) => state.conflict !== null);
  const isExplained = useExplaining((state) => state.code !== null || state.node !== null);
  const isTour = useTourState((state) => state.step !== null);
  return (
    <Suspense>
      <MountOnce when={isDialog || isConflict || isExplained || isTour}>
        <Dialogs />
      </MountOnce>
    </Suspense>
  );
}
