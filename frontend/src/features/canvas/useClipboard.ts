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
import { formatPlural } from "@/lib/format";
import { useSelection } from "@/session/selection";
import { GRID } from "./geometry";
import { placeNodes } from "./layout";

const OFFSET: [number, number] = [2 * GRID, 2 * GRID];

/** Copies pieces of a loop through the system's clipboard, so that they travel between tabs and loops. */
export function useClipboard() {
  const { catalog, store, runId } = useOpenLoop();

  const insert = useCallback(
    (fragment: Fragment, label: string) => {
      const { document, dispatch } = store.getState();
      const placed = placeFragment(fragment, document, OFFSET);
      const shown = placeNodes(catalog, document, runId !== null);
      dispatch(pasteItems, { fragment: placed, shown }, { label });
      useSelection.getState().select({ nodes: Object.keys(placed.nodes) });
    },
    [catalog, store, runId],
  );

  /** The pieces with the places at which they are seen. */
  const cut = useCallback(
    (ids: readonly string[]) => {
      const { document } = store.getState();
      return cutFragment(
        { ...document, layout: placeNodes(catalog, document, runId !== null) },
        ids,
      );
    },
    [catalog, store, runId],
  );

  return useMemo(
    () => ({
      copy: (ids: readonly string[]) => {
        if (ids.length === 0) return;
        const text = writeFragment(cut(ids));
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
        if (ids.length > 0) insert(cut(ids), "Duplicate");
      },
    }),
    [store, insert, cut],
  );
}
