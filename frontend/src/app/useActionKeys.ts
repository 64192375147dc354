import { useEffect } from "react";
import { useAddSearch } from "@/features/palette/addSearch";
import { useDialogs } from "@/session/dialogs";
import { type Action, isTyping, matchesKeys } from "./actions";

/** Runs the action whose keys are pressed, unless the user types or a dialog is open. */
export function useActionKeys(actions: readonly Action[]): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isAsked()) return;
      const typing = isTyping(event.target);
      for (const action of actions) {
        const keys = action.keys.find((one) => matchesKeys(event, one));
        if (!keys) continue;
        if (typing && !WHILE_TYPING.has(action.id)) return;
        // Tab moves the focus everywhere but on the canvas itself.
        if (keys === "tab" && event.target !== document.body && !isCanvas(event.target)) return;
        if (keys === "enter" && event.target instanceof HTMLButtonElement) return;
        if (action.isEnabled && !action.isEnabled()) return;
        event.preventDefault();
        action.run();
        return;
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [actions]);
}

/** A list or dialog is open, or on its way: what is typed is meant for it. */
function isAsked(): boolean {
  if (useDialogs.getState().open !== null || useAddSearch.getState().request !== null) return true;
  return document.querySelector('[role="dialog"], [role="menu"]') !== null;
}

const WHILE_TYPING = new Set(["commands", "save"]);

function isCanvas(target: EventTarget | null): boolean {
  return target instanceof Element && target.classList.contains("react-flow__pane");
}
