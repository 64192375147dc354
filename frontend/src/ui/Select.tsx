import { ChevronDown, ChevronsUpDown } from "lucide-react";
import { type KeyboardEvent, type Ref, useEffect, useId, useRef, useState } from "react";
import { beginList } from "@/session/choosing";
import { classes } from "./classes";
import { CHOSEN } from "./control";
import { fetchLater } from "./later";
import { loadable, usePart } from "./loadable";
import { Opening } from "./Opening";

export const selectParts = loadable(() => import("./selectParts"));
fetchLater(selectParts.bring);

export interface SelectOption<V extends string> {
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

export interface SelectProps<V extends string> {
  ref?: Ref<HTMLButtonElement>;
  id?: string;
  label: string;
  value: V;
  options: readonly SelectOption<V>[];
  /** Whether the list has a line for searching. */
  isSearched?: boolean;
  /** What that line says while it is empty. */
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

/** More than are taken in at a glance: these are searched. */
const MANY = 9;
const OPEN_KEYS = ["ArrowDown", "ArrowUp", "Enter", " "];

/** One of several; where they are many, the list is searched by typing. The list comes right after the page. */
export function Select<V extends string>(props: SelectProps<V>) {
  const { id, label, value, options, isDisabled = false, className, onOpen } = props;
  const { isSearched = options.length > MANY, look, startsOpen = false } = props;
  const [isOpen, setOpen] = useState(startsOpen);
  const [typed, setTyped] = useState("");
  const [isTaken, setTaken] = useState(false);
  const { part, hasFailed } = usePart(selectParts);
  const trigger = useRef<HTMLButtonElement>(null);
  const listId = useId();
  const chosen = options.find((option) => option.value === value);
  useEffect(() => (isOpen ? beginList() : undefined), [isOpen]);

  const close = () => setOpen(false);
  const open = () => {
    if (hasFailed) void selectParts.bring();
    if (isOpen) return;
    onOpen?.();
    setTyped("");
    setTaken(false);
    setOpen(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const isLetter = isPrinted(event);
    if (!isLetter && !OPEN_KEYS.includes(event.key)) return;
    event.preventDefault();
    if (isOpen && event.key === "Enter" && typed !== "") setTaken(true);
    open();
    // Typing on the closed list searches it.
    if (isLetter) setTyped((before) => before + event.key);
  };
  const Mark = isSearched ? ChevronsUpDown : ChevronDown;
  const List = isSearched ? part?.SearchedList : part?.ShortList;
  return (
    <>
      <button
        ref={(button) => {
          trigger.current = button;
          return given(props.ref, button);
        }}
        id={id}
        type="button"
        role="combobox"
        aria-label={label}
        aria-expanded={isOpen}
        aria-controls={isOpen && part ? listId : undefined}
        aria-haspopup={isSearched ? "dialog" : "listbox"}
        aria-busy={(isOpen && !part && !hasFailed) || undefined}
        disabled={isDisabled}
        tabIndex={look?.tabIndex}
        title={look?.text}
        className={
          look?.className ??
          classes(CHOSEN, !chosen || chosen.isUnset ? "text-faint" : "text-text", className)
        }
        onClick={() => (isOpen && !hasFailed ? close() : open())}
        onKeyDown={onKeyDown}
      >
        {look?.text ?? (
          <>
            <span className="min-w-0 flex-1 wrap-anywhere">
              {chosen?.label ?? (isSearched ? value : "")}
            </span>
            <Mark size={14} className="shrink-0 text-faint" aria-hidden="true" />
          </>
        )}
      </button>
      {isOpen ? (
        <Opening from={selectParts} anchor={trigger} onClose={close}>
          {() =>
            List ? (
              <List
                {...props}
                id={listId}
                anchor={trigger}
                typed={typed}
                isTaken={isTaken}
                onTyped={setTyped}
                onClose={close}
              />
            ) : null
          }
        </Opening>
      ) : null}
    </>
  );
}

function given<T>(ref: Ref<T> | undefined, held: T | null) {
  if (typeof ref === "function") return ref(held);
  if (ref) ref.current = held;
}

export function isPrinted(event: KeyboardEvent): boolean {
  const isCommand = event.ctrlKey || event.metaKey || event.altKey;
  return event.key.length === 1 && event.key !== " " && !isCommand;
}
