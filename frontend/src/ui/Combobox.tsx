import { Command, defaultFilter } from "cmdk";
import { Check, ChevronsUpDown, Search } from "lucide-react";
import { Popover } from "radix-ui";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { beginList } from "@/state/choosing";
import { classes } from "./classes";
import { CHOSEN } from "./control";
import { RichText } from "./RichText";
import type { SelectOption, SelectProps } from "./Select";

interface ComboboxProps<V extends string> extends SelectProps<V> {
  placeholder?: string;
  /** Closed, it looks so in place of a field, and says this. */
  look?: { className: string; text: string; tabIndex: number };
  startsOpen?: boolean;
  /** Offers what is typed as a value of its own where no option is called so. */
  onType?: (typed: string) => void;
}

const TYPED = "typed:";
const OPEN_KEYS = ["ArrowDown", "ArrowUp", "Enter"];

export function Combobox<V extends string>(props: ComboboxProps<V>) {
  const { ref, id, label, value, options, isDisabled = false, className } = props;
  const { look, startsOpen = false, onOpen } = props;
  const [isOpen, setOpen] = useState(startsOpen);
  const [search, setSearch] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => (isOpen ? beginList() : undefined), [isOpen]);
  const chosen = options.find((option) => option.value === value);

  const open = (opens: boolean, typed = "") => {
    if (opens) {
      onOpen?.();
      setSearch(typed);
    }
    setOpen(opens);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const isLetter = isPrinted(event);
    if (!isLetter && !OPEN_KEYS.includes(event.key)) return;
    event.preventDefault();
    open(true, isLetter ? (isOpen ? search : "") + event.key : "");
  };
  return (
    <Popover.Root open={isOpen} onOpenChange={open}>
      <Popover.Trigger
        ref={ref}
        id={id}
        role="combobox"
        aria-label={label}
        disabled={isDisabled}
        tabIndex={look?.tabIndex}
        title={look?.text}
        className={
          look?.className ??
          classes(CHOSEN, !chosen || chosen.isUnset ? "text-faint" : "text-text", className)
        }
        onKeyDown={onKeyDown}
      >
        {look?.text ?? (
          <>
            <span className="min-w-0 flex-1 wrap-anywhere">{chosen?.label ?? value}</span>
            <ChevronsUpDown size={14} className="shrink-0 text-faint" aria-hidden="true" />
          </>
        )}
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          aria-label={label}
          align="start"
          sideOffset={4}
          collisionPadding={8}
          className="z-50 w-[max(var(--radix-popover-trigger-width),260px)] max-w-[min(420px,calc(100vw-16px))] overflow-hidden rounded-2 border border-line bg-raised shadow-3 motion-safe:animate-[pop-in_100ms_ease-out]"
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            // Radix would select what was typed already.
            input.current?.focus();
          }}
        >
          <Command
            label={label}
            loop
            defaultValue={nameOf(value)}
            filter={(name, words, keywords) =>
              name.startsWith(TYPED) ? 0.01 : defaultFilter(keywords?.join(" ") ?? name, words)
            }
          >
            <div className="flex items-center gap-2 border-line border-b px-2">
              <Search size={14} className="shrink-0 text-faint" aria-hidden="true" />
              <Command.Input
                ref={input}
                value={search}
                onValueChange={setSearch}
                placeholder={props.placeholder ?? "Search"}
                className="h-9 min-w-0 flex-1 bg-transparent text-sm outline-none"
              />
            </div>
            <Found {...props} search={search} onClose={() => setOpen(false)} />
          </Command>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

interface FoundProps<V extends string> extends ComboboxProps<V> {
  search: string;
  onClose: () => void;
}

function Found<V extends string>(props: FoundProps<V>) {
  const { label, value, options, search, onChange, onType, onClose } = props;
  const typed = search.trim();
  const isNew = typed !== "" && !options.some((option) => option.value === typed);
  const groups = [...new Set(options.map((option) => option.group ?? ""))].toSorted(
    (a, b) => Number(a !== "") - Number(b !== ""),
  );
  return (
    <Command.List
      label={label}
      className="max-h-[min(360px,calc(var(--radix-popover-content-available-height)-44px))] overflow-y-auto p-1"
    >
      <Command.Empty className="p-3 text-muted text-sm">No match</Command.Empty>
      {groups.map((group) => (
        <Command.Group
          key={group}
          heading={group || undefined}
          className="[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-faint [&_[cmdk-group-heading]]:text-xs"
        >
          {options
            .filter((option) => (option.group ?? "") === group)
            .map((option) => (
              <Item
                key={option.value}
                option={option}
                isChosen={option.value === value}
                onChoose={() => {
                  onChange(option.value);
                  onClose();
                }}
              />
            ))}
        </Command.Group>
      ))}
      {onType && isNew ? (
        <Command.Item
          value={`${TYPED}${typed}`}
          className="flex cursor-default items-center rounded-1 px-2 py-1 pl-8 text-sm data-[selected=true]:bg-hover"
          onSelect={() => {
            onType(typed);
            onClose();
          }}
        >
          Use “{typed}”
        </Command.Item>
      ) : null}
    </Command.List>
  );
}

interface ItemProps<V extends string> {
  option: SelectOption<V>;
  isChosen: boolean;
  onChoose: () => void;
}

function Item<V extends string>({ option, isChosen, onChoose }: ItemProps<V>) {
  const { value, label, help, keywords = [], isUnset } = option;
  return (
    <Command.Item
      value={nameOf(value)}
      keywords={[label, help ?? "", ...keywords]}
      aria-checked={isChosen}
      className="flex cursor-default select-none items-start gap-2 rounded-1 px-2 py-1 text-sm data-[selected=true]:bg-hover"
      onSelect={onChoose}
    >
      <span className="flex h-5 w-4 shrink-0 items-center justify-center text-accent-text">
        {isChosen ? <Check size={14} aria-hidden="true" /> : null}
      </span>
      <span className="min-w-0">
        <span className={classes("wrap-anywhere", isUnset && "text-muted")}>{label}</span>
        {help ? (
          <span className="block text-muted text-xs">
            <RichText text={help} />
          </span>
        ) : null}
      </span>
    </Command.Item>
  );
}

/** No item of cmdk may have an empty name, and ours may have an empty value. */
const nameOf = (value: string) => `=${value}`;

function isPrinted(event: KeyboardEvent): boolean {
  const isCommand = event.ctrlKey || event.metaKey || event.altKey;
  return event.key.length === 1 && event.key !== " " && !isCommand;
}
