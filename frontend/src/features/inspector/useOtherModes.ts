import { useMemo, useState } from "react";
import { ofOtherModes, setAmong } from "@/catalog/modes";
import { useDocument, useMode } from "@/state/document/context";
import { type FormSettings, NOTHING_HIDDEN } from "./form/FormContext";

export interface OtherModes {
  hidden: FormSettings["hidden"];
  /** Whether the kind has anything that the mode leaves to others. */
  isAny: boolean;
  /** Paths of those settings that the node has set. */
  set: string[];
  isShown: boolean;
  show: (isShown: boolean) => void;
}

/** What the loop's mode leaves to other modes in the form of a node; shown where it is asked for. */
export function useOtherModes(node: string): OtherModes {
  const mode = useMode();
  const data = useDocument((state) => state.document.nodes[node]);
  const [shownFor, setShownFor] = useState<string | null>(null);
  const kind = data?.kind ?? "";
  const others = useMemo(() => ofOtherModes(mode, kind), [mode, kind]);
  const isShown = shownFor === node;
  return {
    hidden: isShown ? NOTHING_HIDDEN : others,
    isAny: others.fields.size + others.algorithms.size > 0,
    set: setAmong(data, others.fields),
    isShown,
    show: (wish) => setShownFor(wish ? node : null),
  };
}
