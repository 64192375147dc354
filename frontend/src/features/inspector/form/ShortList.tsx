import { X } from "lucide-react";
import { useState } from "react";
import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText } from "@/catalog/shapes";
import { Combobox } from "@/ui/Combobox";
import { CONTROL } from "@/ui/control";
import { useSuggestions } from "./useSuggestions";

interface ShortListProps {
  field: Field;
  label: string;
  item: Field;
  items: readonly Json[];
  isLocked: boolean;
  onChange: (items: Json[] | undefined) => void;
}

/** Words or numbers as chips: chosen where there is a choice; typed, enter adds one and backspace in the empty box takes the last away. */
export function ShortList({ field, label, item, items, isLocked, onChange }: ShortListProps) {
  const [text, setText] = useState("");
  const names = useSuggestions(field.choosesFrom ? field : item);
  const choices =
    item.shape === "choice"
      ? item.choices.map((choice) => choice.label)
      : names.map((one) => one.value);
  const open = choices.filter((choice) => !items.includes(choice));
  const asks = items.length === 0 ? defaultText(field) || "add…" : "add…";
  const look = `${CONTROL} h-5 w-24 flex-1 border-transparent px-1 text-xs hover:border-transparent`;

  const add = (typed: string) => {
    const word = typed.trim();
    if (word === "") return;
    const number = item.shape === "number" ? Number(word) : Number.NaN;
    // A word among numbers is kept for the check to refuse.
    const value: Json = Number.isFinite(number) ? number : word;
    if (!items.includes(value)) onChange([...items, value]);
    setText("");
  };
  const remove = (index: number) => {
    const rest = items.filter((_, at) => at !== index);
    onChange(rest.length === 0 ? undefined : rest);
  };

  return (
    <div className="flex flex-wrap items-center gap-1 rounded-1 border border-line bg-surface p-1">
      {items.map((one, index) => (
        <span
          key={String(one)}
          className="inline-flex h-5 max-w-full items-center gap-1 rounded-full bg-hover pr-1 pl-2 text-xs"
        >
          <span className="truncate">{String(one)}</span>
          {isLocked ? null : (
            <button
              type="button"
              aria-label={`Remove ${String(one)} from ${label}`}
              className="text-faint hover:text-text"
              onClick={() => remove(index)}
            >
              <X size={12} />
            </button>
          )}
        </span>
      ))}
      {isLocked ? null : choices.length > 0 ? (
        <Combobox
          label={`Add to ${label}`}
          value=""
          options={open.map((choice) => ({ value: choice, label: choice }))}
          look={{ className: `${look} text-left text-faint`, text: asks, tabIndex: 0 }}
          onChange={add}
          onType={add}
        />
      ) : (
        <input
          aria-label={`Add to ${label}`}
          className={look}
          value={text}
          placeholder={asks}
          onChange={(event) => setText(event.target.value)}
          onBlur={() => add(text)}
          onKeyDown={(event) => {
            if (event.key === "Enter" || event.key === ",") {
              event.preventDefault();
              add(text);
            } else if (event.key === "Backspace" && text === "" && items.length > 0) {
              remove(items.length - 1);
            }
          }}
        />
      )}
    </div>
  );
}
