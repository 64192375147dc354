import { useCallback, useMemo } from "react";
import { toast } from "sonner";
import { pasteItems } from "@/document/commands/pasteItems";
import { useOpenLoop } from "@/document/context";
import {
  cutFragment,
  type Fragment,
  placeFragment,
  readFragment,
  writeFragment,
} from "@/document/fragment";
import { freeOffset } from "@/document/freePlace";
import { formatPlural } from "@/lib/format";
import { useSelection } from "./selection";

/** Copies pieces of a loop through the system's clipboard, so that they travel between tabs and loops. */
export function useClipboard() {
  const { catalog, store } = useOpenLoop();

  const insert = useCallback(
    (fragment: Fragment, label: string) => {
      const { document, dispatch } = store.getState();
      const offset = freeOffset(fragment.layout, document.layout);
      const placed = placeFragment(catalog, fragment, document, offset);
      dispatch(pasteItems, { fragment: placed }, { label });
      useSelection.getState().select({ nodes: Object.keys(placed.nodes) });
    },
    [catalog, store],
  );

  return useMemo(
    () => ({
      copy: (ids: readonly string[]) => {
        if (ids.length === 0) return;
        const text = writeFragment(cutFragment(store.getState().document, ids));
        navigator.clipboard.writeText(text).then(
          () => toast(`Copied ${formatPlural(ids.length, "node")}`),
          () => toast.error("The browser does not let the page write to the clipboard."),
        );
      },
      /** True where the text is a piece of a loop. */
      paste: (text: string): boolean => {
        const fragment = readFragment(text);
        if (!fragment || store.getState().isReadonly) return false;
        insert(fragment, "Paste");
        return true;
      },
      duplicate: (ids: readonly string[]) => {
        if (ids.length > 0) insert(cutFragment(store.getState().document, ids), "Duplicate");
      },
    }),
    [store, insert],
  );
}
