/** What opens where one of several is chosen. */
import { Check } from "lucide-react";
import { type KeyboardEvent, useEffect, useRef } from "react";
import { classes } from "./classes";
import { ListPanel, type ListProps } from "./ListPanel";
import { RichText } from "./RichText";
import { isPrinted } from "./Select";

export { SearchedList } from "./SearchedList";

/** Milliseconds after which letters begin another word. */
const WORD = 800;

/** All at a glance, the chosen one focused. It is as wide as its texts, which wrap rather than being cut. */
export function ShortList<V extends string>(props: ListProps<V>) {
  const { value, options, typed, onChange, onClose } = props;
  const list = useRef<HTMLDivElement>(null);
  const word = useRef({ text: typed.toLowerCase(), at: performance.now() });

  const items = () => [...(list.current?.querySelectorAll<HTMLElement>("[role=option]") ?? [])];
  const focus = (at: number) => items()[Math.max(0, Math.min(at, options.length - 1))]?.focus();
  const startsWith = (text: string) =>
    options.findIndex((option) => option.label.toLowerCase().startsWith(text));
  const spell = (letter: string) => {
    const isOn = performance.now() - word.current.at < WORD;
    const text = (isOn ? word.current.text : "") + letter.toLowerCase();
    word.current = { text, at: performance.now() };
    const found = startsWith(text);
    if (found >= 0) focus(found);
  };
  const choose = (option: V) => {
    onChange(option);
    onClose();
  };
  const taken = props.isTaken ? options[startsWith(typed.toLowerCase())] : undefined;
  useEffect(() => {
    if (taken) choose(taken.value);
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const at = items().indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: options.length - 1 }[event.key];
    if (to !== undefined) focus(to);
    else if (isPrinted(event)) spell(event.key);
    else if (event.key !== "Tab") return;
    event.preventDefault();
  };
  return (
    <ListPanel
      {...props}
      role="listbox"
      onKeyDown={onKeyDown}
      className="min-w-[var(--radix-popover-trigger-width)]"
      onOpened={() => {
        const found = typed === "" ? -1 : startsWith(word.current.text);
        focus(found >= 0 ? found : options.findIndex((option) => option.value === value));
      }}
    >
      <div
        ref={list}
        className="max-h-[min(420px,var(--radix-popover-content-available-height))] overflow-y-auto p-1"
      >
        {options.map((option) => (
          <div
            key={option.value}
            role="option"
            aria-selected={option.value === value}
            tabIndex={-1}
            className="flex cursor-default select-none items-start gap-2 rounded-1 px-2 py-1 text-sm outline-none focus:bg-hover"
            onPointerMove={(event) => event.currentTarget.focus({ preventScroll: true })}
            onClick={() => choose(option.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" && event.key !== " ") return;
              event.preventDefault();
              choose(option.value);
            }}
          >
            <span className="flex h-5 w-4 shrink-0 items-center justify-center text-accent-text">
              {option.value === value ? <Check size={14} aria-hidden="true" /> : null}
            </span>
            <span className="min-w-0">
              <span className={classes(option.isUnset && "text-muted")}>{option.label}</span>
              {option.help ? (
                <span className="block text-muted text-xs">
                  <RichText text={option.help} />
                </span>
              ) : null}
            </span>
          </div>
        ))}
      </div>
    </ListPanel>
  );
}
