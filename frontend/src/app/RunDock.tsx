import { usePreferences } from "@/session/preferences";
import { Dock } from "./Dock";

/** What a run tells, panel by panel. */
export function RunDock() {
  const tab = usePreferences((state) => state.runTab);
  const set = usePreferences((state) => state.set);
  return (
    <Dock page="run" label="Panels of the run" value={tab} onChange={(runTab) => set({ runTab })} />
  );
}
