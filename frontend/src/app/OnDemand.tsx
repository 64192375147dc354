import { lazy, Suspense } from "react";
import { useSync } from "@/document/context";
import { type DialogName, useDialogs } from "@/session/dialogs";
import { useExplaining } from "@/session/explaining";
import { useTourState } from "@/session/tour";
import { Once } from "./Asked";

const Dialogs = lazy(() => import("./Dialogs").then((module) => ({ default: module.Dialogs })));
const NAMES: readonly DialogName[] = ["confirmRun", "gallery", "history", "newLoop"];

/** Dialogs, loaded when the first one is opened. */
export function OnDemand() {
  const isDialog = useDialogs((state) => NAMES.includes(state.open));
  const isConflict = useSync((state) => state.conflict !== null);
  const isExplained = useExplaining((state) => state.code !== null || state.node !== null);
  const isTour = useTourState((state) => state.step !== null);
  return (
    <Suspense>
      <Once when={isDialog || isConflict || isExplained || isTour}>
        <Dialogs />
      </Once>
    </Suspense>
  );
}
