import { Check } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { classes } from "./classes";

interface MenuProps {
  trigger: ReactNode;
  align?: "start" | "end";
  isOpen?: boolean;
  onOpenChange?: (isOpen: boolean) => void;
  onClosed?: () => void;
  children: ReactNode;
}

const ITEM =
  "flex h-8 cursor-default select-none items-center gap-2 rounded-1 px-2 outline-none data-[disabled]:opacity-45 data-[highlighted]:bg-hover";

export function Menu(props: MenuProps) {
  const { trigger, align = "start", isOpen, onOpenChange, onClosed, children } = props;
  return (
    <DropdownMenu.Root
      modal={false}
      {...(isOpen === undefined ? {} : { open: isOpen })}
      {...(onOpenChange ? { onOpenChange } : {})}
    >
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 min-w-48 animate-[pop-in_100ms_ease-out] rounded-2 border border-line bg-raised p-1 text-sm shadow-3"
          onCloseAutoFocus={(event) => {
            if (!onClosed) return;
            event.preventDefault();
            onClosed();
          }}
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

interface MenuItemProps {
  icon?: ReactNode;
  keys?: string | undefined;
  isDanger?: boolean;
  isDisabled?: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuItem({ icon, keys, isDanger, isDisabled, onSelect, children }: MenuItemProps) {
  return (
    <DropdownMenu.Item
      className={classes(ITEM, isDanger && "text-error")}
      disabled={isDisabled ?? false}
      onSelect={onSelect}
    >
      <span className="flex w-4 justify-center text-muted">{icon}</span>
      <span className="flex-1">{children}</span>
      {keys ? <span className="pl-6 text-faint text-xs">{keys}</span> : null}
    </DropdownMenu.Item>
  );
}

export function MenuSeparator() {
  return <DropdownMenu.Separator className="my-1 h-px bg-line" />;
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return (
    <DropdownMenu.Label className="px-2 py-1 text-faint text-xs">{children}</DropdownMenu.Label>
  );
}

interface MenuChoiceProps {
  isChosen: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuChoice({ isChosen, onSelect, children }: MenuChoiceProps) {
  return (
    <DropdownMenu.CheckboxItem className={ITEM} checked={isChosen} onSelect={onSelect}>
      <span className="flex w-4 justify-center">{isChosen ? <Check size={14} /> : null}</span>
      {children}
    </DropdownMenu.CheckboxItem>
  );
}
