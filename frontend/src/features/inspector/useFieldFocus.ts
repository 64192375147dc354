import { type RefObject, useEffect } from "react";
import { useSelection } from "@/session/selection";

const FLASH = "field-flash";

/** Brings the field of a problem into view: the deepest one that is shown. */
export function useFieldFocus(panel: RefObject<HTMLElement | null>): void {
  const focus = useSelection((state) => state.focus);
  useEffect(() => {
    if (!focus?.field) return;
    // Groups open and the panel may just have been filled: look after they did.
    const timer = setTimeout(() => {
      const found = deepest(panel.current, focus.field ?? "");
      if (!found) return;
      found.scrollIntoView({ block: "center" });
      found
        .querySelector<HTMLElement>(
          "input, select, textarea, [role=switch], [contenteditable=true]",
        )
        ?.focus({ preventScroll: true });
      found.classList.remove(FLASH);
      requestAnimationFrame(() => found.classList.add(FLASH));
    }, 120);
    return () => clearTimeout(timer);
  }, [focus, panel]);
}

function deepest(panel: HTMLElement | null, field: string): HTMLElement | null {
  const parts = field.split(".");
  for (let length = parts.length; length > 0; length -= 1) {
    const path = parts.slice(0, length).join(".");
    const found = panel?.querySelector<HTMLElement>(`[data-field="${CSS.escape(path)}"]`);
    if (found) return found;
  }
  return null;
}
