import { Popover as RadixPopover } from "radix-ui";
import type { ReactNode } from "react";
import { classes } from "./classes";

interface PopoverProps {
  label: string;
  trigger: ReactNode;
  align?: "start" | "center" | "end";
  className?: string;
  children: ReactNode;
}

export function Popover({ label, trigger, align = "center", className, children }: PopoverProps) {
  return (
    <RadixPopover.Root>
      <RadixPopover.Trigger asChild>{trigger}</RadixPopover.Trigger>
      <RadixPopover.Portal>
        <RadixPopover.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          aria-label={label}
          className={classes(
            "z-50 w-96 max-w-[calc(100vw-16px)] rounded-2 border border-line bg-raised p-3 text-sm shadow-3",
            className,
          )}
        >
          {children}
        </RadixPopover.Content>
      </RadixPopover.Portal>
    </RadixPopover.Root>
  );
}
