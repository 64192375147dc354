import { Suspense } from "react";
import { useSync } from "@/document/context";
import type { Action } from "@/session/actions";
import { later } from "@/ui/later";
import { Asked } from "./Asked";
import { Commands } from "./Commands";
import { OnDemand } from "./OnDemand";
import { Shortcuts } from "./Shortcuts";

const ConflictDialog = later(() =>
  import("./head/ConflictDialog").then((module) => module.ConflictDialog),
);
const ConfirmRunDialog = later(() =>
  import("@/features/runs/ConfirmRunDialog").then((module) => module.ConfirmRunDialog),
);
const HistoryDialog = later(() =>
  import("@/features/history/HistoryDialog").then((module) => module.HistoryDialog),
);
const NewLoopDialog = later(() =>
  import("@/features/loops/NewLoopDialog").then((module) => module.NewLoopDialog),
);

export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  const isConflict = useSync((state) => state.conflict !== null);
  return (
    <>
      <Suspense>{isConflict ? <ConflictDialog /> : null}</Suspense>
      <Asked dialog="confirmRun">
        <ConfirmRunDialog />
      </Asked>
      <Asked dialog="history">
        <HistoryDialog />
      </Asked>
      <Asked dialog="newLoop">
        <NewLoopDialog />
      </Asked>
      <Shortcuts actions={actions} />
      <Commands actions={actions} />
      <OnDemand />
    </>
  );
}
