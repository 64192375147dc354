import { useSyncExternalStore } from "react";

const query = matchMedia("(max-width: 1180px)");

/** Whether the window is too narrow for generous panels. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
}
