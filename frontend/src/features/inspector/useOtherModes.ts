import { useState } from "react";
import { NOTHING_HIDDEN, ofOtherModes, setAmong } from "@/catalog/modes";
import { useDocument, useMode } from "@/state/document/context";
import type { FormSettings } from "./form/FormContext";

export interface OtherModes {
  hidden: FormSettings["hidden"];
  isAny: boolean;
  /** Fields of other modes that have a value. */
  set: string[];
  isShown: boolean;
  show: (isShown: boolean) => void;
}

/** What a node's form hides because the loop's mode leaves it to other modes, and a switch to show it. */
export function useOtherModes(node: string): OtherModes {
  const mode = useMode();
  const data = useDocument((state) => state.document.nodes[node]);
  const [shownFor, setShownFor] = useState<string | null>(null);
  const others = ofOtherModes(mode, data?.kind);
  const isShown = shownFor === node;
  return {
    hidden: isShown ? NOTHING_HIDDEN : others,
    isAny: others.fields.length + others.algorithms.length > 0,
    set: setAmong(data, others.fields),
    isShown,
    show: (shouldShow) => setShownFor(shouldShow ? node : null),
  };
}
