/** What a value of a node can be chosen from, on its card. */
import { useMemo } from "react";
import { ofOtherModes } from "@/catalog/modes";
import { setField } from "@/document/commands/setField";
import { useDocument, useOpenLoop } from "@/document/context";
import { type Picked, pickAt } from "@/document/picks";
import { useMode } from "@/document/useMode";
import type { Path } from "@/lib/paths";
import { useVisits } from "@/session/useVisits";

const NONE: ReadonlySet<string> = new Set();

export function useIsPicked(node: string, path: Path): boolean {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  const place = path.join(".");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` and `place` are what is read
  return useMemo(
    () => pickAt(catalog, store.getState().document, node, path, NONE) !== null,
    [catalog, store, node, data, place],
  );
}

interface NodePick extends Pick<Picked, "options" | "isOpen"> {
  choose: (value: string) => void;
}

/** The list as the loop has it now. */
export function usePick(node: string, path: Path, label: string): NodePick | null {
  const { catalog, store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const mode = useMode();
  const visitsOf = useVisits();
  const hidden = ofOtherModes(mode, document.nodes[node]?.kind ?? "").algorithms;
  const picked = pickAt(catalog, document, node, path, hidden);
  if (!picked) return null;
  const choose = (value: string) => {
    const change = { node, ...picked.write(value, visitsOf) };
    store.getState().dispatch(setField, change, { label: `Change ${label} of ${node}` });
  };
  return { options: picked.options, isOpen: picked.isOpen, choose };
}
