import { useSyncExternalStore } from "react";
import { usePreferences } from "@/state/preferences";

const query = matchMedia("(max-width: 1180px)");

export function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
}

const NARROW_SETTINGS = 300;

export function useSettingsWidth(): number {
  const width = usePreferences((state) => state.inspectorWidth);
  return useNarrow() ? Math.min(width, NARROW_SETTINGS) : width;
}
