import { Check } from "lucide-react";
import { Menu as RadixMenu } from "radix-ui/internal";
import { type ReactNode, type RefObject, useRef } from "react";
import { classes } from "./classes";

const PANEL =
  "z-50 min-w-48 rounded-2 border border-line bg-raised p-1 text-sm shadow-3 animate-[pop-in_100ms_ease-out]";
const ITEM =
  "flex h-8 cursor-default select-none items-center gap-2 rounded-1 px-2 outline-none data-[disabled]:opacity-45 data-[highlighted]:bg-hover";
const FIRST = "[role^=menuitem]:not([data-disabled])";

interface MenuPanelProps {
  id: string;
  anchor: RefObject<HTMLElement | null>;
  align: "start" | "end";
  /** Then the first item has the focus, and not the whole. */
  isByKey: boolean;
  onClose: () => void;
  onClosed: (() => void) | undefined;
  children: ReactNode;
}

/** What a menu opens. The focus goes back to what was pressed, unless something else was pressed since. */
export function MenuPanel(props: MenuPanelProps) {
  const { id, anchor, align, isByKey, onClose, onClosed, children } = props;
  const isElsewhere = useRef(false);
  return (
    <RadixMenu.Root open modal={false} onOpenChange={(isOpen) => isOpen || onClose()}>
      <RadixMenu.Anchor virtualRef={anchor} />
      <RadixMenu.Portal>
        <RadixMenu.Content
          id={id}
          aria-labelledby={`${id}trigger`}
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className={PANEL}
          onFocus={(event) => {
            if (event.target !== event.currentTarget || !isByKey) return;
            event.preventDefault();
            event.currentTarget.querySelector<HTMLElement>(FIRST)?.focus();
          }}
          onInteractOutside={() => {
            isElsewhere.current = true;
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (onClosed) onClosed();
            else if (!isElsewhere.current) anchor.current?.focus();
          }}
        >
          {children}
        </RadixMenu.Content>
      </RadixMenu.Portal>
    </RadixMenu.Root>
  );
}

export interface MenuItemProps {
  icon?: ReactNode;
  keys?: string | undefined;
  isDanger?: boolean;
  isDisabled?: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuItem({ icon, keys, isDanger, isDisabled, onSelect, children }: MenuItemProps) {
  return (
    <RadixMenu.Item
      className={classes(ITEM, isDanger && "text-error")}
      disabled={isDisabled ?? false}
      onSelect={onSelect}
    >
      <span className="flex w-4 justify-center text-muted">{icon}</span>
      <span className="flex-1">{children}</span>
      {keys ? <span className="pl-6 text-faint text-xs">{keys}</span> : null}
    </RadixMenu.Item>
  );
}

export function MenuSeparator() {
  return <RadixMenu.Separator className="my-1 h-px bg-line" />;
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <RadixMenu.Label className="px-2 py-1 text-faint text-xs">{children}</RadixMenu.Label>;
}

export interface MenuChoiceProps {
  isChosen: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuChoice({ isChosen, onSelect, children }: MenuChoiceProps) {
  return (
    <RadixMenu.CheckboxItem className={ITEM} checked={isChosen} onSelect={onSelect}>
      <span className="flex w-4 justify-center">{isChosen ? <Check size={14} /> : null}</span>
      {children}
    </RadixMenu.CheckboxItem>
  );
}
