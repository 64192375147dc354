import { useSyncExternalStore } from "react";
import { usePreferences } from "@/state/preferences";

/** A measure of the window, read again whenever that has another size. */
export function useWindow<T extends number | boolean>(read: () => T): T {
  return useSyncExternalStore((listener) => {
    addEventListener("resize", listener);
    return () => removeEventListener("resize", listener);
  }, read);
}

const NARROW = 1180;
const NARROW_SETTINGS = 300;

export function useSettingsWidth(): number {
  const width = usePreferences((state) => state.inspectorWidth);
  const isNarrow = useWindow(() => innerWidth <= NARROW);
  return isNarrow ? Math.min(width, NARROW_SETTINGS) : width;
}
