import { Popover as RadixPopover } from "radix-ui";
import type { ReactNode } from "react";

interface PopoverProps {
  trigger: ReactNode;
  side?: "top" | "right" | "bottom" | "left";
  align?: "start" | "center" | "end";
  children: ReactNode;
}

export function Popover({ trigger, side = "bottom", align = "start", children }: PopoverProps) {
  return (
    <RadixPopover.Root>
      <RadixPopover.Trigger asChild>{trigger}</RadixPopover.Trigger>
      <RadixPopover.Portal>
        <RadixPopover.Content
          side={side}
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-w-96 animate-[pop-in_100ms_ease-out] rounded-2 border border-line bg-raised p-3 text-sm shadow-3"
        >
          {children}
        </RadixPopover.Content>
      </RadixPopover.Portal>
    </RadixPopover.Root>
  );
}
