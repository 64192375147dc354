import { Slot } from "radix-ui";
import { type ReactNode, useId } from "react";
import { Floating, type Side } from "./Floating";
import { useTip } from "./useTip";

interface TooltipProps {
  text: ReactNode;
  keys?: string | undefined;
  side?: Side;
  children: ReactNode;
}

/** Help on hover and focus. The child must take handlers. */
export function Tooltip({ text, keys, side = "bottom", children }: TooltipProps) {
  const id = useId();
  const { anchor, ofAnchor, ofTip } = useTip();
  const isShown = Boolean(text) && anchor !== null;
  return (
    <>
      <Slot.Root aria-describedby={isShown ? id : undefined} {...ofAnchor}>
        {children}
      </Slot.Root>
      {isShown ? (
        <Floating
          id={id}
          role="tooltip"
          anchor={anchor}
          side={side}
          className="fixed z-50 w-max max-w-72 rounded-2 border border-line bg-raised px-2 py-1 text-text text-xs shadow-2"
          {...ofTip}
        >
          {text}
          {keys ? <span className="ml-2 text-faint">{keys}</span> : null}
        </Floating>
      ) : null}
    </>
  );
}
