import type { Action } from "@/session/actions";
import { Asked } from "./Asked";
import { Commands } from "./Commands";
import { OnDemand } from "./OnDemand";
import { ShortcutSheet } from "./ShortcutSheet";

/** What opens over a page with a loop or a run. */
export function EditorDialogs({ actions }: { actions: readonly Action[] }) {
  return (
    <>
      <Asked dialog="shortcuts">
        <ShortcutSheet actions={actions} />
      </Asked>
      <Commands actions={actions} />
      <OnDemand />
    </>
  );
}
