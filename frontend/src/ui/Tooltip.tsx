import { Tooltip as RadixTooltip } from "radix-ui";
import { createContext, type ReactNode, use } from "react";

const IsInside = createContext(false);

/** Tips within follow one another without a wait. */
export function TooltipProvider({ children }: { children: ReactNode }) {
  return (
    <IsInside value>
      <RadixTooltip.Provider delayDuration={350} skipDelayDuration={200}>
        {children}
      </RadixTooltip.Provider>
    </IsInside>
  );
}

interface TooltipProps {
  text: ReactNode;
  keys?: string | undefined;
  side?: "top" | "right" | "bottom" | "left";
  children: ReactNode;
}

/** Help on hover and keyboard focus. The child must take handlers. */
export function Tooltip({ text, keys, side = "bottom", children }: TooltipProps) {
  const isInside = use(IsInside);
  const tip = (
    <RadixTooltip.Root {...(text ? {} : { open: false })}>
      <RadixTooltip.Trigger
        asChild
        onFocus={(event) => {
          // A dialog that closes gives the focus back, which is no question.
          if (!event.target.matches(":focus-visible")) event.preventDefault();
        }}
      >
        {children}
      </RadixTooltip.Trigger>
      <RadixTooltip.Portal>
        <RadixTooltip.Content
          side={side}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 w-max max-w-72 rounded-2 border border-line bg-raised px-2 py-1 text-text text-xs shadow-2"
        >
          {text}
          {keys ? <span className="ml-2 text-faint">{keys}</span> : null}
        </RadixTooltip.Content>
      </RadixTooltip.Portal>
    </RadixTooltip.Root>
  );
  return isInside ? tip : <TooltipProvider>{tip}</TooltipProvider>;
}
