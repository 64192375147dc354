import { useEffect, useRef } from "react";
import { type Action, isInScope, isSingleKey, matchesKeys } from "@/state/actions";
import { useAddSearch, useDialogs } from "@/state/dialogs";
import { usePreferences } from "@/state/preferences";
import { useWindowEvent } from "@/ui/useWindowEvent";
import { useEditorActions } from "./actions/useEditorActions";

/** Names the page in the window's title, and gives it its commands with their keys. */
export function useLoopCommands(title: string): readonly Action[] {
  const actions = useEditorActions();
  useActionKeys(actions);
  useEffect(() => {
    document.title = `${title} · coloop`;
  }, [title]);
  return actions;
}

/** Runs the action whose keys are pressed where they count, unless a dialog is open. */
export function useActionKeys(actions: readonly Action[]): void {
  const isOnPane = useRef(false);
  const leavePane = () => {
    isOnPane.current = false;
  };
  useWindowEvent("keydown", (event) => {
    if (event.defaultPrevented || isAsked()) return;
    const { hasSingleKeys } = usePreferences.getState();
    for (const action of actions) {
      const keys = action.keys.find((one) => matchesKeys(event, one));
      if (!keys) continue;
      if (!hasSingleKeys && isSingleKey(keys)) return;
      if (!isInScope(event.target, action.scope ?? "page", keys)) return;
      // Tab moves the focus. It is a command once after the canvas was pressed, where there is no focus.
      if (keys === "tab" && !isOnPane.current) return;
      if (action.isEnabled && !action.isEnabled()) return;
      if (keys === "tab") leavePane();
      event.preventDefault();
      action.run();
      return;
    }
  });
  const point = ({ target }: PointerEvent) => {
    isOnPane.current = target instanceof Element && target.classList.contains("react-flow__pane");
  };
  useWindowEvent("pointerdown", point, { capture: true });
  useWindowEvent("focusin", leavePane);
}

function isAsked(): boolean {
  if (useDialogs.getState().open !== null || useAddSearch.getState().request !== null) return true;
  return document.querySelector('[role="dialog"], [role="menu"]') !== null;
}
