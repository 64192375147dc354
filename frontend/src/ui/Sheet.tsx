import { X } from "lucide-react";
import { Dialog as RadixDialog } from "radix-ui";
import { type ReactNode, useRef } from "react";
import { useGivenBack } from "./Dialog";
import { IconButton } from "./IconButton";

interface SheetProps {
  title: string;
  description: string;
  onClose: () => void;
  children: ReactNode;
}

export function Sheet({ title, description, onClose, children }: SheetProps) {
  const panel = useRef<HTMLDivElement>(null);
  const { takeFocus, giveBack } = useGivenBack();
  return (
    <RadixDialog.Root open modal={false} onOpenChange={(open) => !open && onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Content
          ref={panel}
          tabIndex={-1}
          onOpenAutoFocus={(event) => takeFocus(event, panel.current)}
          onCloseAutoFocus={giveBack}
          onInteractOutside={(event) => event.preventDefault()}
          className="fixed top-12 right-0 bottom-0 z-30 flex w-[440px] max-w-[100vw] animate-[overlay-in_120ms_ease-out] flex-col border-line border-l bg-surface shadow-3 outline-none"
        >
          <header className="flex items-start gap-3 border-line border-b px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <RadixDialog.Title className="font-semibold text-base leading-6 wrap-anywhere">
                {title}
              </RadixDialog.Title>
              <RadixDialog.Description className="text-muted text-xs">
                {description}
              </RadixDialog.Description>
            </div>
            <IconButton label="Close" size="small" onClick={onClose} icon={<X size={16} />} />
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{children}</div>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}
