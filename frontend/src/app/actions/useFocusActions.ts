import { useMemo } from "react";
import type { Action } from "@/state/actions";
import { useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { useSelection } from "@/state/selection";

const FIELD =
  '[data-field] :is(input, textarea, [contenteditable="true"], [role="combobox"], [role="switch"])';

/** Where the keyboard goes next: the graph, the settings, the name, the connections of what is selected. */
export function useFocusActions(): Action[] {
  const { store } = useOpenLoop();
  return useMemo(() => {
    const focus = (selector: string) => {
      const found = document.querySelector<HTMLElement>(selector);
      found?.focus();
      if (found instanceof HTMLInputElement) found.select();
    };
    const inSettings = (selector: string) => () => {
      usePreferences.getState().set({ isInspectorOpen: true });
      requestAnimationFrame(() => focus(selector));
    };
    const canEdit = () => !store.getState().isReadonly;
    const hasOne = () => canEdit() && useSelection.getState().nodes.length === 1;
    return [
      {
        id: "box",
        label: "Go to the selected node, or the first",
        keys: ["b"],
        section: "Go to",
        run: () => {
          const [id] = useSelection.getState().nodes;
          focus(`.react-flow__node${id ? `[data-id="${CSS.escape(id)}"]` : '[tabindex="0"]'}`);
        },
      },
      {
        id: "settings",
        label: "Go to the settings",
        keys: ["e"],
        section: "Go to",
        run: inSettings(FIELD),
      },
      {
        id: "rename",
        label: "Rename the node",
        keys: ["f2"],
        section: "Edit",
        isEnabled: hasOne,
        run: inSettings('[aria-label="Name of the node"]'),
      },
      {
        id: "connect",
        label: "Connect the node to another",
        keys: ["c"],
        section: "Edit",
        isEnabled: hasOne,
        run: inSettings('[aria-label="Connect to"]'),
      },
    ];
  }, [store]);
}
