import { Command, defaultFilter } from "cmdk";
import { Check, ChevronsUpDown, Search } from "lucide-react";
import { Popover } from "radix-ui";
import { type KeyboardEvent, type Ref, useEffect, useId, useState } from "react";
import { beginList } from "@/session/choosing";
import { classes } from "./classes";
import { CHOSEN } from "./control";
import { RichText } from "./RichText";

export interface ComboboxOption<V extends string> {
  value: V;
  label: string;
  /** A line below the label. */
  help?: string | undefined;
  /** Under which heading it stands; those without one come first. */
  group?: string | undefined;
  /** Found by these words, too. */
  keywords?: string[] | undefined;
  /** Nothing is chosen by it: it stands for what holds where nothing is set. */
  isUnset?: boolean;
}

export interface ComboboxProps<V extends string> {
  ref?: Ref<HTMLButtonElement>;
  id?: string;
  label: string;
  value: V;
  options: readonly ComboboxOption<V>[];
  /** What the line for searching says while it is empty. */
  placeholder?: string;
  isDisabled?: boolean;
  className?: string;
  /** Closed, it looks so in place of a field, and says this. */
  look?: { className: string; text: string; tabIndex: number };
  startsOpen?: boolean;
  /** Before the list is shown. */
  onOpen?: () => void;
  onChange: (value: V) => void;
  /** Offers what is typed as a value of its own where no option is called so. */
  onType?: (typed: string) => void;
}

const OPEN_KEYS = ["ArrowDown", "ArrowUp", "Enter", " "];
const TYPED = "typed:";

/** One of many: a list that is searched by typing. */
export function Combobox<V extends string>(props: ComboboxProps<V>) {
  const { ref, id, label, value, options, isDisabled = false, className, onOpen } = props;
  const { look, startsOpen = false } = props;
  const [isOpen, setOpen] = useState(startsOpen);
  const [search, setSearch] = useState("");
  const listId = useId();
  const chosen = options.find((option) => option.value === value);
  useEffect(() => (isOpen ? beginList() : undefined), [isOpen]);
  const open = (opens: boolean) => {
    if (opens) onOpen?.();
    setSearch("");
    setOpen(opens);
  };
  return (
    <Popover.Root open={isOpen} onOpenChange={open}>
      <Popover.Trigger asChild>
        <button
          ref={ref}
          id={id}
          type="button"
          role="combobox"
          aria-label={label}
          aria-expanded={isOpen}
          aria-controls={isOpen ? listId : undefined}
          aria-haspopup="dialog"
          disabled={isDisabled}
          tabIndex={look?.tabIndex}
          title={look?.text}
          className={
            look?.className ??
            classes(CHOSEN, !chosen || chosen.isUnset ? "text-faint" : "text-text", className)
          }
          onKeyDown={(event) => {
            const isLetter = isPrinted(event);
            if (!isLetter && (isOpen || !OPEN_KEYS.includes(event.key))) return;
            event.preventDefault();
            if (!isOpen) open(true);
            // Typing on the closed list searches it.
            if (isLetter) setSearch((typed) => typed + event.key);
          }}
        >
          {look?.text ?? (
            <>
              <span className="min-w-0 flex-1 wrap-anywhere">{chosen?.label ?? value}</span>
              <ChevronsUpDown size={14} className="shrink-0 text-faint" aria-hidden="true" />
            </>
          )}
        </button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          id={listId}
          aria-label={label}
          align="start"
          sideOffset={4}
          collisionPadding={8}
          className="z-50 w-[max(var(--radix-popover-trigger-width),260px)] max-w-[min(420px,calc(100vw-16px))] overflow-hidden rounded-2 border border-line bg-raised shadow-3 motion-safe:animate-[pop-in_100ms_ease-out]"
        >
          <Found {...props} search={search} setSearch={setSearch} close={() => setOpen(false)} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function isPrinted(event: KeyboardEvent): boolean {
  const isCommand = event.ctrlKey || event.metaKey || event.altKey;
  return event.key.length === 1 && event.key !== " " && !isCommand;
}

interface FoundProps {
  search: string;
  setSearch: (search: string) => void;
  close: () => void;
}

/** The line to type in and what is found by it. */
function Found<V extends string>(props: ComboboxProps<V> & FoundProps) {
  const { label, value, options, placeholder = "Search", onChange, onType } = props;
  const { search, setSearch, close } = props;
  const typed = search.trim();
  const isNew = typed !== "" && !options.some((option) => option.value === typed);
  const groups = [...new Set(options.map((option) => option.group ?? ""))].toSorted(
    (a, b) => Number(a !== "") - Number(b !== ""),
  );
  return (
    <Command
      label={label}
      loop
      defaultValue={itemName(value)}
      filter={(name, words, keywords) =>
        name.startsWith(TYPED) ? 0.01 : defaultFilter(keywords?.join(" ") ?? name, words)
      }
    >
      <div className="flex items-center gap-2 border-line border-b px-2">
        <Search size={14} className="shrink-0 text-faint" aria-hidden="true" />
        <Command.Input
          autoFocus
          value={search}
          onValueChange={setSearch}
          placeholder={placeholder}
          className="h-9 min-w-0 flex-1 bg-transparent text-sm outline-none"
        />
      </div>
      <Command.List
        label={label}
        className="max-h-[min(360px,calc(var(--radix-popover-content-available-height)-44px))] overflow-y-auto p-1"
      >
        <Command.Empty className="p-3 text-muted text-sm">Nothing is called so.</Command.Empty>
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
                    close();
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
              close();
            }}
          >
            Use “{typed}”
          </Command.Item>
        ) : null}
      </Command.List>
    </Command>
  );
}

interface ItemProps<V extends string> {
  option: ComboboxOption<V>;
  isChosen: boolean;
  onChoose: () => void;
}

function Item<V extends string>({ option, isChosen, onChoose }: ItemProps<V>) {
  const { label, help, keywords = [] } = option;
  return (
    <Command.Item
      value={itemName(option.value)}
      keywords={[label, help ?? "", ...keywords]}
      aria-checked={isChosen}
      className="flex cursor-default select-none items-start gap-2 rounded-1 px-2 py-1 text-sm data-[selected=true]:bg-hover"
      onSelect={onChoose}
    >
      <span className="flex h-5 w-4 shrink-0 items-center justify-center text-accent-text">
        {isChosen ? <Check size={14} aria-hidden="true" /> : null}
      </span>
      <span className="min-w-0">
        <span className={classes("wrap-anywhere", option.isUnset && "text-muted")}>{label}</span>
        {help ? (
          <span className="block text-muted text-xs">
            <RichText text={help} />
          </span>
        ) : null}
      </span>
    </Command.Item>
  );
}

/** No item may have an empty name, and ours may have an empty value. */
function itemName(value: string): string {
  return `=${value}`;
}
