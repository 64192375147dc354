import { X } from "lucide-react";
import { usePreferences } from "@/session/preferences";
import { IconButton } from "@/ui/IconButton";
import { Dock } from "./Dock";

/** The panels of the composer; they can be put away. */
export function EditorDock() {
  const tab = usePreferences((state) => state.dockTab);
  const set = usePreferences((state) => state.set);
  return (
    <Dock page="loop" label="Panels" value={tab} onChange={(dockTab) => set({ dockTab })}>
      <IconButton
        label="Hide the panel"
        keys="J"
        size="small"
        onClick={() => set({ isDockOpen: false })}
      >
        <X size={14} />
      </IconButton>
    </Dock>
  );
}
