import { Check, ChevronDown } from "lucide-react";
import { Select as RadixSelect } from "radix-ui";
import { type Ref, useEffect, useState } from "react";
import { beginList } from "@/state/choosing";
import { Combobox } from "./Combobox";
import { classes } from "./classes";
import { CHOSEN } from "./control";
import { RichText } from "./RichText";

export interface SelectOption<V extends string> {
  value: V;
  label: string;
  help?: string | undefined;
  group?: string | undefined;
  keywords?: string[] | undefined;
  isUnset?: boolean;
}

export interface SelectProps<V extends string> {
  ref?: Ref<HTMLButtonElement>;
  id?: string;
  label: string;
  value: V;
  options: readonly SelectOption<V>[];
  isDisabled?: boolean;
  className?: string;
  onOpen?: () => void;
  onChange: (value: V) => void;
}

const MANY = 9;

/** One of several; where they are many, the list is searched by typing. */
export function Select<V extends string>(props: SelectProps<V>) {
  return props.options.length > MANY ? <Combobox {...props} /> : <ShortSelect {...props} />;
}

/** Radix takes an empty value for none. */
const nameOf = (value: string) => `=${value}`;

function ShortSelect<V extends string>(props: SelectProps<V>) {
  const { ref, id, label, value, options, isDisabled = false, className, onOpen, onChange } = props;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => (isOpen ? beginList() : undefined), [isOpen]);
  const chosen = options.find((option) => option.value === value);
  return (
    <RadixSelect.Root
      value={nameOf(value)}
      disabled={isDisabled}
      open={isOpen}
      onOpenChange={(opens) => {
        if (opens) onOpen?.();
        setOpen(opens);
      }}
      onValueChange={(name) => onChange(name.slice(1) as V)}
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
        <span className="min-w-0 flex-1 wrap-anywhere">{chosen?.label}</span>
        <ChevronDown size={14} className="shrink-0 text-faint" aria-hidden="true" />
      </RadixSelect.Trigger>
      <RadixSelect.Portal>
        <RadixSelect.Content
          position="popper"
          align="start"
          sideOffset={4}
          collisionPadding={8}
          aria-label={label}
          className="z-50 min-w-[var(--radix-select-trigger-width)] max-w-[min(420px,calc(100vw-16px))] overflow-hidden rounded-2 border border-line bg-raised shadow-3 motion-safe:animate-[pop-in_100ms_ease-out]"
        >
          <RadixSelect.Viewport className="max-h-[min(420px,var(--radix-select-content-available-height))] p-1">
            {options.map((option) => (
              <RadixSelect.Item
                key={option.value}
                value={nameOf(option.value)}
                textValue={option.label}
                className="flex cursor-default select-none items-start gap-2 rounded-1 px-2 py-1 text-sm outline-none data-[highlighted]:bg-hover"
              >
                <span className="flex h-5 w-4 shrink-0 items-center justify-center text-accent-text">
                  <RadixSelect.ItemIndicator>
                    <Check size={14} />
                  </RadixSelect.ItemIndicator>
                </span>
                <span className="min-w-0">
                  <RadixSelect.ItemText className={classes(option.isUnset && "text-muted")}>
                    {option.label}
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
