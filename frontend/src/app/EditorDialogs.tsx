import { lazy, Suspense, useEffect } from "react";
import type { Action } from "@/state/actions";
import { type DialogName, useDialogs, useExplaining } from "@/state/dialogs";
import { useSync } from "@/state/document/context";
import { useTourState } from "@/state/preferences";
import { MountOnce } from "./MountOnce";

const loadCommands = () => import("./CommandPalette");
const CommandPalette = lazy(() =>
  loadCommands().then((module) => ({ default: module.CommandPalette })),
);
const ShortcutSheet = lazy(() =>
  import("./ShortcutSheet").then((module) => ({ default: module.ShortcutSheet })),
);
/** Milliseconds after which the list of commands is loaded, so that it opens at once. */
const AFTER = 1500;

export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  const open = useDialogs((state) => state.open);
  useEffect(() => {
    const timer = setTimeout(() => void loadCommands(), AFTER);
    return () => clearTimeout(timer);
  }, []);
  return (
    <>
      <Suspense>
        <MountOnce when={open === "shortcuts"}>
          <ShortcutSheet actions={actions} />
        </MountOnce>
      </Suspense>
      <Suspense>{open === "commands" ? <CommandPalette actions={actions} /> : null}</Suspense>
      <OnDemand />
    </>
  );
}

const Dialogs = lazy(() => import("./Dialogs").then((module) => ({ default: module.Dialogs })));
const NAMES: readonly DialogName[] = [
  "confirmRun",
  "gallery",
  "history",
  "jobFile",
  "newLoop",
  "saveBlock",
  "tryValues",
];

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
