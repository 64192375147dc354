import type { Action } from "@/session/actions";
import { later } from "@/ui/later";
import { Asked } from "./Asked";

const ShortcutSheet = later(() => import("./ShortcutSheet").then((module) => module.ShortcutSheet));

export function Shortcuts({ actions }: { actions: readonly Action[] }) {
  return (
    <Asked dialog="shortcuts">
      <ShortcutSheet actions={actions} />
    </Asked>
  );
}
