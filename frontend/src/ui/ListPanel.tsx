import { Popover } from "radix-ui";
import { type KeyboardEvent, type ReactNode, type RefObject, useRef } from "react";
import { classes } from "./classes";
import type { SelectProps } from "./Select";

export interface ListProps<V extends string> extends Omit<SelectProps<V>, "ref"> {
  id: string;
  anchor: RefObject<HTMLElement | null>;
  /** What was typed since the list was opened. */
  typed: string;
  /** Enter was pressed after that before the list had the focus: what is found first is chosen. */
  isTaken: boolean;
  onTyped: (typed: string) => void;
  onClose: () => void;
}

interface ListPanelProps {
  id: string;
  role: "dialog" | "listbox";
  label: string;
  anchor: RefObject<HTMLElement | null>;
  className: string;
  onKeyDown?: (event: KeyboardEvent) => void;
  /** Gives the focus to what is inside. */
  onOpened?: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** The panel of a list. The focus goes back to what was pressed, unless something else was pressed since. */
export function ListPanel(props: ListPanelProps) {
  const { id, role, label, anchor, className, onKeyDown, onOpened, onClose, children } = props;
  const isElsewhere = useRef(false);
  return (
    <Popover.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
      <Popover.Anchor virtualRef={anchor as RefObject<HTMLElement>} />
      <Popover.Portal>
        <Popover.Content
          id={id}
          role={role}
          aria-label={label}
          align="start"
          sideOffset={4}
          collisionPadding={8}
          className={classes(
            "z-50 max-w-[min(420px,calc(100vw-16px))] overflow-hidden rounded-2 border border-line bg-raised shadow-3 motion-safe:animate-[pop-in_100ms_ease-out]",
            className,
          )}
          onKeyDown={onKeyDown}
          onOpenAutoFocus={(event) => {
            if (!onOpened) return;
            event.preventDefault();
            onOpened();
          }}
          onInteractOutside={(event) => {
            // A click on what was pressed closes by itself.
            if (anchor.current?.contains(event.target as Node)) event.preventDefault();
            else isElsewhere.current = true;
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (!isElsewhere.current) anchor.current?.focus();
          }}
        >
          {children}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
