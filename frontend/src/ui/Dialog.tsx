import { X } from "lucide-react";
import { Dialog as RadixDialog } from "radix-ui";
import { type ReactNode, useRef } from "react";
import { classes } from "./classes";
import { IconButton } from "./IconButton";

interface DialogProps {
  title: string;
  description?: ReactNode;
  isOpen: boolean;
  onClose: () => void;
  width?: string;
  isBlocking?: boolean;
  footer?: ReactNode;
  children?: ReactNode;
}

export function Dialog({
  title,
  description,
  isOpen,
  onClose,
  width = "max-w-lg",
  isBlocking = false,
  footer,
  children,
}: DialogProps) {
  const panel = useRef<HTMLDivElement>(null);
  const { takeFocus, giveBack } = useGivenBack();
  const focusFirst = (event: Event) => {
    // The first field of the content, not the cross in the corner.
    const first = panel.current?.querySelector<HTMLElement>(
      "[data-body] :is(input, textarea, select, [contenteditable=true])",
    );
    takeFocus(event, first ?? panel.current);
  };
  const keepOpen = (event: Event) => {
    if (isBlocking) event.preventDefault();
  };
  return (
    <RadixDialog.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="fixed inset-0 z-40 animate-[overlay-in_120ms_ease-out] bg-scrim" />
        <RadixDialog.Content
          ref={panel}
          tabIndex={-1}
          onOpenAutoFocus={focusFirst}
          onCloseAutoFocus={giveBack}
          onEscapeKeyDown={keepOpen}
          onPointerDownOutside={keepOpen}
          {...(description ? {} : { "aria-describedby": undefined })}
          className={classes(
            "fixed top-1/2 left-1/2 z-40 flex max-h-[86vh] w-[calc(100vw-32px)] -translate-x-1/2 -translate-y-1/2 flex-col rounded-3 border border-line bg-surface shadow-3 outline-none animate-[overlay-in_140ms_ease-out]",
            width,
          )}
        >
          <header className="flex items-start gap-4 px-6 pt-5 pb-3">
            <div className="min-w-0 flex-1">
              <RadixDialog.Title className="truncate font-semibold text-lg">
                {title}
              </RadixDialog.Title>
              {description ? (
                <RadixDialog.Description className="mt-1 text-muted text-sm">
                  {description}
                </RadixDialog.Description>
              ) : null}
            </div>
            {isBlocking ? null : (
              <IconButton label="Close" size="small" onClick={onClose} icon={<X size={16} />} />
            )}
          </header>
          {children ? (
            <div data-body className="min-h-0 flex-1 overflow-y-auto px-6 pb-5">
              {children}
            </div>
          ) : null}
          {footer ? (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-line border-t px-6 py-3">
              {footer}
            </footer>
          ) : null}
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

/** Dialogs are opened by what they do not know: Radix would give the focus to a trigger of its own. */
export function useGivenBack() {
  const opener = useRef<Element | null>(null);
  return {
    takeFocus: (event: Event, to: HTMLElement | null | undefined) => {
      event.preventDefault();
      opener.current = document.activeElement;
      to?.focus();
    },
    giveBack: (event: Event) => {
      event.preventDefault();
      const before = opener.current;
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    },
  };
}
