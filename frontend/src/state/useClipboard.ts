import { useMemo } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { dumpSpec, readFragment as readText } from "@/api/routes";
import {
  cutFragment,
  type Fragment,
  fromFragmentSpec,
  placeFragment,
  toFragmentSpec,
} from "@/document/fragment";
import { freeOffset } from "@/graph/freePlace";
import { formatPlural } from "@/lib/format";
import { clearSelection, select } from "@/state/selection";
import { pasteItems, removeItems } from "./commands/nodes";
import { useOpenLoop } from "./document/context";

/**
 * Copies pieces of a loop through the system's clipboard as YAML, so that they travel between tabs, loops and text
 * editors. The service writes and reads the text.
 */
export function useClipboard() {
  const { catalog, store } = useOpenLoop();

  return useMemo(() => {
    const insert = (fragment: Fragment, label: string) => {
      const { document } = store.getState();
      const offset = freeOffset(catalog, fragment, document);
      const placed = placeFragment(catalog, fragment, document, offset);
      store.dispatch(pasteItems, { fragment: placed }, { label });
      select({ nodes: Object.keys(placed.nodes) });
    };
    const copy = async (ids: readonly string[]): Promise<boolean> => {
      if (ids.length === 0) return false;
      const fragment = cutFragment(store.getState().document, ids);
      try {
        await writeClipboard(dumpSpec(toFragmentSpec(fragment)).then(({ yaml }) => yaml));
      } catch (error) {
        toast.error("Nothing was copied.", { description: errorMessage(error) });
        return false;
      }
      toast(`Copied ${formatPlural(ids.length, "node")} as YAML`);
      return true;
    };
    return {
      copy,
      /** Removes only what is on the clipboard. */
      cut: async (ids: readonly string[]): Promise<void> => {
        const { document } = store.getState();
        if (!(await copy(ids)) || store.getState().document !== document) return;
        store.dispatch(removeItems, { nodes: ids, edges: [] }, { label: "Cut" });
        clearSelection();
      },
      paste: async (text: string): Promise<void> => {
        if (store.getState().isReadonly || !text.includes(":")) return;
        try {
          const { nodes, edges, layout } = await readText(text);
          const fragment = fromFragmentSpec({ nodes, edges, layout });
          if (Object.keys(fragment.nodes).length > 0) insert(fragment, "Paste");
          else toast("The clipboard contains no nodes.", { id: "paste" });
        } catch (error) {
          toast.error("Nothing was pasted.", { description: errorMessage(error) });
        }
      },
      duplicate: (ids: readonly string[]) => {
        if (ids.length > 0) insert(cutFragment(store.getState().document, ids), "Duplicate");
      },
    };
  }, [catalog, store]);
}

/** A promise, because the browser gives leave at the press of the keys and not later. */
async function writeClipboard(text: Promise<string>): Promise<void> {
  const { clipboard } = navigator;
  if (!clipboard)
    throw new Error("The browser allows access to the clipboard only over HTTPS or on localhost.");
  if (typeof ClipboardItem === "undefined") return clipboard.writeText(await text);
  const plain = text.then((words) => new Blob([words], { type: "text/plain" }));
  await clipboard.write([new ClipboardItem({ "text/plain": plain })]);
}
