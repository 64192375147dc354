import { Command, defaultFilter } from "cmdk";
import { Check, Search } from "lucide-react";
import { type Ref, useEffect, useRef } from "react";
import { classes } from "./classes";
import { ListPanel, type ListProps } from "./ListPanel";
import { RichText } from "./RichText";
import type { SelectOption } from "./Select";

const TYPED = "typed:";

/** One of many: a list that is searched by typing. */
export function SearchedList<V extends string>(props: ListProps<V>) {
  const input = useRef<HTMLInputElement>(null);
  const { isTaken } = props;
  const early = useRef(props);
  early.current = props;
  useEffect(() => {
    if (isTaken) takeFirst(early.current);
  }, [isTaken]);
  return (
    <ListPanel
      {...props}
      role="dialog"
      className="w-[max(var(--radix-popover-trigger-width),260px)]"
      onOpened={() => {
        // What was typed until now is gone on with, not written over.
        const end = input.current?.value.length ?? 0;
        input.current?.focus();
        input.current?.setSelectionRange(end, end);
      }}
    >
      <Found {...props} input={input} />
    </ListPanel>
  );
}

/** Takes what Enter would take in the list: what is called most like the typed words. */
function takeFirst<V extends string>({ options, typed, onChange, onType, onClose }: ListProps<V>) {
  const words = typed.trim();
  let first: SelectOption<V> | null = null;
  let best = 0;
  for (const option of words === "" ? [] : options) {
    const score = defaultFilter(keywordsOf(option).join(" "), words);
    if (score > best) [first, best] = [option, score];
  }
  if (first) onChange(first.value);
  else if (words !== "") onType?.(words);
  onClose();
}

/** The line to type in and what is found by it. */
function Found<V extends string>(props: ListProps<V> & { input: Ref<HTMLInputElement> }) {
  const { label, value, options, placeholder = "Search", onChange, onType } = props;
  const { typed: search, onTyped, onClose } = props;
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
          ref={props.input}
          value={search}
          onValueChange={onTyped}
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
    </Command>
  );
}

interface ItemProps<V extends string> {
  option: SelectOption<V>;
  isChosen: boolean;
  onChoose: () => void;
}

function Item<V extends string>({ option, isChosen, onChoose }: ItemProps<V>) {
  const { label, help } = option;
  return (
    <Command.Item
      value={itemName(option.value)}
      keywords={keywordsOf(option)}
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

/** What an option is found by. */
function keywordsOf({ label, help, keywords = [] }: SelectOption<string>): string[] {
  return [label, help ?? "", ...keywords];
}

/** No item may have an empty name, and ours may have an empty value. */
function itemName(value: string): string {
  return `=${value}`;
}
