import { type FocusEvent, useState } from "react";
import type { Json } from "@/api/types";

/** Whether the keys go elsewhere: not within, not to a list that belongs to a field within, not to another window. */
function isLeft({ currentTarget, target, relatedTarget }: FocusEvent): boolean {
  if (document.activeElement === target) return false;
  if (!(relatedTarget instanceof Element)) return true;
  return !currentTarget.contains(relatedTarget) && relatedTarget.closest(POPUP) === null;
}

export function whenLeft(then: () => void) {
  return { onBlur: (event: FocusEvent) => isLeft(event) && then() };
}

const POPUP = "[data-radix-popper-content-wrapper],[role=listbox],[role=dialog]";

/** Whether the keys are in a field: one that is empty meanwhile is being filled, and no error yet. */
export function useEntered() {
  const [isEntered, setEntered] = useState(false);
  return {
    isEntered,
    watch: {
      onFocus: () => setEntered(true),
      onBlur: (event: FocusEvent) => isLeft(event) && setEntered(false),
    },
  };
}

export function isEmpty(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.every((one) => isEmpty(one));
  return value === undefined || value === null || value === "";
}
