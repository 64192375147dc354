import { Popover } from "radix-ui";
import { useEffect, useId, useRef } from "react";
import { closeFormula, giveBack, keepFormula, leaveFormula, termOf, useFormula } from "./formula";
import { TermView } from "./TermView";
import { useTerms } from "./useTerms";

function isAbove(anchor: HTMLElement): boolean {
  return anchor.getBoundingClientRect().top < window.innerHeight / 2;
}

export function FormulaPopover() {
  const { number, title, anchor, isPinned } = useFormula();
  const { data: terms, isError } = useTerms(number?.isTried ?? false);
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    anchor?.setAttribute("aria-describedby", id);
    return () => anchor?.removeAttribute("aria-describedby");
  }, [anchor, id]);
  useEffect(() => {
    if (isPinned) panel.current?.focus();
  }, [isPinned]);
  if (!number || !anchor) return null;
  const term = terms ? termOf(terms, number) : null;
  return (
    <Popover.Root open onOpenChange={(isOpen) => !isOpen && closeFormula()}>
      <Popover.Anchor virtualRef={{ current: anchor }} />
      <Popover.Portal>
        <Popover.Content
          ref={panel}
          id={id}
          tabIndex={-1}
          side={isAbove(anchor) ? "bottom" : "top"}
          sideOffset={6}
          collisionPadding={8}
          aria-label={`Formula: ${title}`}
          onPointerEnter={keepFormula}
          onPointerLeave={leaveFormula}
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            if (useFormula.getState().isPinned) panel.current?.focus();
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (isPinned && anchor.isConnected) giveBack(anchor);
          }}
          onInteractOutside={(event) => {
            // Where another number is asked for, it has taken the place already.
            const asked = useFormula.getState().anchor;
            if (event.target instanceof Node && asked?.contains(event.target))
              event.preventDefault();
          }}
          className="z-50 flex max-h-[min(60vh,var(--radix-popover-content-available-height))] w-104 max-w-[calc(100vw-16px)] flex-col overflow-hidden rounded-3 border border-line bg-raised text-sm shadow-3 outline-none motion-safe:animate-[pop-in_100ms_ease-out]"
        >
          {term ? (
            <TermView title={title} term={term} />
          ) : (
            <p className="p-3 text-muted">
              {isError
                ? "The formula could not be read from the server."
                : terms
                  ? "There is no formula: the number is not known."
                  : "Reading the formula…"}
            </p>
          )}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
