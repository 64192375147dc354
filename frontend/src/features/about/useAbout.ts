import { usePreferences } from "@/session/preferences";
import { useSelection } from "@/session/selection";
import { usePresetOfLoop } from "./usePresetOfLoop";

/** Whether “About this loop” stands in the settings, and how to put it there or away. */
export function useAbout() {
  const { preset, isKnown } = usePresetOfLoop();
  const closed = usePreferences((state) => state.closedAbouts);
  const set = usePreferences((state) => state.set);
  return {
    preset,
    isKnown,
    isOpen: preset !== null && !closed.includes(preset),
    close: () => {
      if (preset !== null) set({ closedAbouts: [...closed, preset] });
    },
    open: () => {
      if (preset === null) return;
      useSelection.getState().clear();
      set({ closedAbouts: closed.filter((name) => name !== preset), isInspectorOpen: true });
    },
  };
}
