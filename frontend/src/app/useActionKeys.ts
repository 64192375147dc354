import { useEffect } from "react";
import { type Action, isInScope, isSingleKey, matchesKeys } from "@/state/actions";
import { useAddSearch, useDialogs } from "@/state/dialogs";
import { usePreferences } from "@/state/preferences";

/** Runs the action whose keys are pressed where they count, unless a dialog is open. */
export function useActionKeys(actions: readonly Action[]): void {
  useEffect(() => {
    let isOnPane = false;
    const point = (event: PointerEvent) => {
      isOnPane =
        event.target instanceof Element && event.target.classList.contains("react-flow__pane");
    };
    const leavePane = () => {
      isOnPane = false;
    };
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isAsked()) return;
      const { hasSingleKeys } = usePreferences.getState();
      for (const action of actions) {
        const keys = action.keys.find((one) => matchesKeys(event, one));
        if (!keys) continue;
        if (!hasSingleKeys && isSingleKey(keys)) return;
        if (!isInScope(event.target, action.scope ?? "page", keys)) return;
        // Tab moves the focus. It is a command once after the canvas was pressed, where there is no focus.
        if (keys === "tab" && !isOnPane) return;
        if (action.isEnabled && !action.isEnabled()) return;
        if (keys === "tab") leavePane();
        event.preventDefault();
        action.run();
        return;
      }
    };
    window.addEventListener("keydown", press);
    window.addEventListener("pointerdown", point, { capture: true });
    window.addEventListener("focusin", leavePane);
    return () => {
      window.removeEventListener("keydown", press);
      window.removeEventListener("pointerdown", point, { capture: true });
      window.removeEventListener("focusin", leavePane);
    };
  }, [actions]);
}

function isAsked(): boolean {
  if (useDialogs.getState().open !== null || useAddSearch.getState().request !== null) return true;
  return document.querySelector('[role="dialog"], [role="menu"]') !== null;
}
