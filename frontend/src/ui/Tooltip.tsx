import { Tooltip as RadixTooltip } from "radix-ui";
import type { ReactNode } from "react";

interface TooltipProps {
  text: ReactNode;
  keys?: string | undefined;
  side?: "top" | "right" | "bottom" | "left";
  children: ReactNode;
}

export function TooltipProvider({ children }: { children: ReactNode }) {
  return (
    <RadixTooltip.Provider delayDuration={350} skipDelayDuration={200}>
      {children}
    </RadixTooltip.Provider>
  );
}

/** Help on hover and focus. The child must be able to hold a ref. */
export function Tooltip({ text, keys, side = "bottom", children }: TooltipProps) {
  if (!text) return children;
  return (
    <RadixTooltip.Root>
      <RadixTooltip.Trigger asChild>{children}</RadixTooltip.Trigger>
      <RadixTooltip.Portal>
        <RadixTooltip.Content
          side={side}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-w-72 rounded-2 border border-line bg-raised px-2 py-1 text-text text-xs shadow-2"
        >
          {text}
          {keys ? <span className="ml-2 text-faint">{keys}</span> : null}
        </RadixTooltip.Content>
      </RadixTooltip.Portal>
    </RadixTooltip.Root>
  );
}
