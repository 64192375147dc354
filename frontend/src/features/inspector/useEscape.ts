import { type RefObject, useEffect } from "react";

/** Escape leads from a control of the settings back to the page, where single keys are commands again. */
export function useEscape(panel: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = panel;
    const leave = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !(event.target instanceof HTMLElement)) return;
      event.target.blur();
      // The selection stays: another press lets go of it.
      event.preventDefault();
    };
    current?.addEventListener("keydown", leave);
    return () => current?.removeEventListener("keydown", leave);
  }, [panel]);
}
