import { Command } from "cmdk";
import { Check } from "lucide-react";
import { Popover } from "radix-ui";
import type { ReactNode } from "react";

export interface SearchOption {
  value: string;
  label: string;
  note?: string;
  words?: string;
}

interface SearchListProps {
  label: string;
  value: string;
  options: readonly SearchOption[];
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
  onChoose: (value: string) => void;
  children: ReactNode;
}

export function SearchList(props: SearchListProps) {
  const { label, value, options, isOpen, onOpenChange, onChoose, children } = props;
  return (
    <Popover.Root open={isOpen} onOpenChange={onOpenChange}>
      <Popover.Trigger asChild>{children}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="start"
          sideOffset={6}
          collisionPadding={8}
          aria-label={label}
          // What opened it, such as a dialog that closes, may take the focus once more.
          onFocusOutside={(event) => event.preventDefault()}
          className="z-50 w-80 overflow-hidden rounded-3 border border-line bg-raised shadow-3 motion-safe:animate-[pop-in_100ms_ease-out]"
        >
          <Command label={label} loop defaultValue={value}>
            <Command.Input
              autoFocus
              placeholder={label}
              className="h-10 w-full border-line border-b bg-transparent px-3 text-sm outline-none"
            />
            <Command.List className="max-h-72 overflow-y-auto p-1">
              <Command.Empty className="p-3 text-muted text-sm">No matches.</Command.Empty>
              {options.map((option) => (
                <Command.Item
                  key={option.value}
                  value={option.value}
                  keywords={[option.label, option.words ?? ""]}
                  onSelect={() => {
                    onOpenChange(false);
                    onChoose(option.value);
                  }}
                  className="flex min-h-8 cursor-default items-center gap-2 rounded-2 px-2 py-1 text-sm data-[selected=true]:bg-hover"
                >
                  <span className="flex w-4 shrink-0 justify-center text-accent-text">
                    {option.value === value ? <Check size={14} aria-label="chosen" /> : null}
                  </span>
                  <span className="min-w-0 flex-1">{option.label}</span>
                  {option.note ? (
                    <span className="tabular shrink-0 text-muted text-xs">{option.note}</span>
                  ) : null}
                </Command.Item>
              ))}
            </Command.List>
          </Command>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
