import { type RefObject, useLayoutEffect, useRef } from "react";
import type { CodeState } from "./CodeModel";
import { inShown, lineAt } from "./folding";
import { LINE_HEIGHT, PADDING, type Visible } from "./useVisibleLines";

/** From the edge that the cursor is kept. */
const MARGIN = 24;

/** What stands where the cursor is, once it is painted. Brings it into sight where it was put somewhere. */
export function useCaret(
  scroller: RefObject<HTMLElement | null>,
  state: CodeState,
  visible: Visible,
): RefObject<HTMLElement | null> {
  const caret = useRef<HTMLElement>(null);
  const seen = useRef(state.moves);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box || seen.current === state.moves) return;
    const row = lineAt(state.shown.shownStarts, inShown(state.shown, state.selected[1]));
    const top = PADDING + row * LINE_HEIGHT;
    const isAbove = top < box.scrollTop + MARGIN;
    const isBelow = top + LINE_HEIGHT > box.scrollTop + box.clientHeight - MARGIN;
    if (isAbove || isBelow) box.scrollTop = top - (box.clientHeight - LINE_HEIGHT) / 2;
    if (row < visible.first || row >= visible.last) return;
    seen.current = state.moves;
    if (caret.current) bringAcross(box, caret.current);
  });
  return caret;
}

function bringAcross(box: HTMLElement, caret: HTMLElement): void {
  const edge = box.querySelector(".code-gutter")?.getBoundingClientRect().right ?? 0;
  const { right } = box.getBoundingClientRect();
  const at = caret.getBoundingClientRect().left;
  if (at > right - MARGIN) box.scrollLeft += at - right + 2 * MARGIN;
  else if (at < edge + MARGIN) box.scrollLeft += at - edge - MARGIN;
}
