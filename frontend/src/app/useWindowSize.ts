import { useSyncExternalStore } from "react";

let size = { width: innerWidth, height: innerHeight };

/** The room that the page has. */
export function useWindowSize(): { width: number; height: number } {
  return useSyncExternalStore(
    (listener) => {
      addEventListener("resize", listener);
      return () => removeEventListener("resize", listener);
    },
    () => {
      if (size.width !== innerWidth || size.height !== innerHeight) {
        size = { width: innerWidth, height: innerHeight };
      }
      return size;
    },
  );
}
