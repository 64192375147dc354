import { Check, ChevronDown } from "lucide-react";
import { Select as RadixSelect } from "radix-ui";
import { type Ref, useEffect, useState } from "react";
import { beginList } from "@/session/choosing";
import { Combobox, type ComboboxOption } from "./Combobox";
import { classes } from "./classes";
import { CHOSEN } from "./control";
import { RichText } from "./RichText";

export type SelectOption<V extends string> = ComboboxOption<V>;

export interface SelectProps<V extends string> {
  ref?: Ref<HTMLButtonElement>;
  id?: string;
  label: string;
  value: V;
  options: readonly SelectOption<V>[];
  isDisabled?: boolean;
  className?: string;
  /** Before the list is shown. */
  onOpen?: () => void;
  onChange: (value: V) => void;
}

/** No value of an option may be empty for Radix, and ours may. */
const inside = (value: string) => `=${value}`;

/** More than are taken in at a glance: these are searched. */
const MANY = 9;

/** One of several; where they are many, the list is searched by typing. */
export function Select<V extends string>(props: SelectProps<V>) {
  return props.options.length > MANY ? <Combobox {...props} /> : <ShortSelect {...props} />;
}

/** The list is as wide as its texts; the chosen one wraps rather than being cut. */
function ShortSelect<V extends string>(props: SelectProps<V>) {
  const { ref, id, label, value, options, isDisabled = false, className, onOpen, onChange } = props;
  const chosen = options.find((option) => option.value === value);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => (isOpen ? beginList() : undefined), [isOpen]);
  return (
    <RadixSelect.Root
      value={inside(value)}
      disabled={isDisabled}
      onOpenChange={(opens) => {
        setOpen(opens);
        if (opens) onOpen?.();
      }}
      onValueChange={(next) => onChange(next.slice(1) as V)}
    >
      <RadixSelect.Trigger
        ref={ref}
        id={id}
        aria-label={label}
        className={classes(
          CHOSEN,
          !chosen || chosen.isUnset ? "text-faint" : "text-text",
          className,
        )}
      >
        <span className="min-w-0 flex-1 wrap-anywhere">{chosen?.label ?? ""}</span>
        <ChevronDown size={14} className="shrink-0 text-faint" aria-hidden="true" />
      </RadixSelect.Trigger>
      <RadixSelect.Portal>
        <RadixSelect.Content
          position="popper"
          sideOffset={4}
          collisionPadding={8}
          className="z-50 max-h-[min(420px,var(--radix-select-content-available-height))] min-w-[var(--radix-select-trigger-width)] max-w-[min(420px,calc(100vw-16px))] overflow-hidden rounded-2 border border-line bg-raised shadow-3 motion-safe:animate-[pop-in_100ms_ease-out]"
        >
          <RadixSelect.Viewport className="p-1">
            {options.map((option) => (
              <RadixSelect.Item
                key={option.value}
                value={inside(option.value)}
                textValue={option.label}
                className="flex cursor-default select-none items-start gap-2 rounded-1 px-2 py-1 text-sm outline-none data-[highlighted]:bg-hover"
              >
                <span className="flex h-5 w-4 shrink-0 items-center justify-center text-accent-text">
                  <RadixSelect.ItemIndicator>
                    <Check size={14} />
                  </RadixSelect.ItemIndicator>
                </span>
                <span className="min-w-0">
                  <RadixSelect.ItemText>
                    <span className={option.isUnset ? "text-muted" : undefined}>
                      {option.label}
                    </span>
                  </RadixSelect.ItemText>
                  {option.help ? (
                    <span className="block text-muted text-xs">
                      <RichText text={option.help} />
                    </span>
                  ) : null}
                </span>
              </RadixSelect.Item>
            ))}
          </RadixSelect.Viewport>
        </RadixSelect.Content>
      </RadixSelect.Portal>
    </RadixSelect.Root>
  );
}
