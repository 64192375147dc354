import { ArrowDown, ArrowUp, Plus, X } from "lucide-react";
import { useState } from "react";
import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText, emptyValue, isSimple } from "@/catalog/shapes";
import { Button } from "@/ui/Button";
import { Combobox } from "@/ui/Combobox";
import { CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { AnyField, type AnyFieldProps } from "./AnyField";
import { Control } from "./Control";
import { EntryForm, useDraftEntry, useDraftWhole } from "./draftEntry";
import { FieldRow } from "./FieldRow";
import { useForm } from "./FormContext";
import { Group } from "./Group";
import { GroupLabels, useLabel } from "./Labels";
import { whenLeft } from "./leaving";
import { useSuggestions } from "./useSuggestions";

/** Values in order. A pair of numbers is a row, a list of words a line of chips, anything else a group. */
export function ListField(props: AnyFieldProps<"list">) {
  const { field, path, value, isRequired } = props;
  const form = useForm();
  const label = useLabel(field.title);
  const draft = useDraftEntry(path);
  const whole = useDraftWhole(path);
  const items = whole.value ?? (Array.isArray(value) ? value : []);
  const item = field.item();
  const isLocked = form.isLocked(field);

  if (field.fixed?.every((one) => isSimple(one()))) {
    const fallback = Array.isArray(field.fallback) ? field.fallback : [];
    const parts = field.fixed.map((one) => one());
    const { choosesFrom, widget } = field;
    const marks = choosesFrom === null ? {} : { choosesFrom, widget };
    const write = (index: number, part: Json | undefined) => {
      if (part === undefined) form.write(path, undefined);
      else
        whole.write(
          parts.map((one, at) =>
            at === index ? part : (items[at] ?? fallback[at] ?? emptyValue(one)),
          ),
        );
    };
    return (
      <FieldRow {...props} isWide={choosesFrom !== null}>
        <div className="flex gap-1" {...whenLeft(whole.finish)}>
          {parts.map((one, index) => (
            <Control
              key={index}
              field={{ ...one, ...marks, fallback: fallback[index] ?? null }}
              path={[...path, index]}
              onChange={(part) => write(index, part)}
              value={items[index]}
              label={`${label}, ${index + 1}`}
              isRequired={false}
            />
          ))}
        </div>
      </FieldRow>
    );
  }
  if (item.shape === "text" || item.shape === "choice" || item.shape === "number") {
    return (
      <FieldRow {...props} isWide>
        <ShortList
          field={field}
          label={label}
          item={item}
          items={items}
          isLocked={isLocked}
          onChange={(next) => form.write(path, next)}
        />
      </FieldRow>
    );
  }

  const rows = draft.begun === null ? items : [...items, draft.begun.value];
  const move = (from: number, to: number) => {
    const next = [...items];
    const [taken] = next.splice(from, 1);
    next.splice(to, 0, taken as Json);
    form.write(path, next);
  };
  const remove = (index: number) => {
    const rest = items.toSpliced(index, 1);
    form.write(path, rest.length === 0 && !isRequired ? undefined : rest);
  };
  return (
    <Group
      {...props}
      value={value ?? (draft.begun === null ? undefined : [])}
      note={rows.length === 0 ? defaultText(field) || "none" : String(rows.length)}
      aside={
        isLocked ? null : (
          <IconButton
            label={`Add to ${label}`}
            size="small"
            onClick={() => draft.add(items.length, emptyValue(item))}
            icon={<Plus size={14} />}
          />
        )
      }
    >
      {rows.map((one, index) => (
        <EntryForm
          key={index}
          draft={draft}
          isBegun={index === items.length}
          className="relative my-1 rounded-2 border border-line p-2"
        >
          <div className="mb-1 flex items-center gap-1 text-faint text-xs">
            <span className="flex-1">{index + 1}</span>
            <IconButton
              label={`Move ${label} ${index + 1} up`}
              size="tiny"
              disabled={isLocked || index === 0 || index === items.length}
              onClick={() => move(index, index - 1)}
              icon={<ArrowUp size={12} />}
            />
            <IconButton
              label={`Move ${label} ${index + 1} down`}
              size="tiny"
              disabled={isLocked || index >= items.length - 1}
              onClick={() => move(index, index + 1)}
              icon={<ArrowDown size={12} />}
            />
            <IconButton
              label={`Remove ${label} ${index + 1}`}
              size="tiny"
              disabled={isLocked}
              onClick={() => (index === items.length ? draft.drop() : remove(index))}
              icon={<X size={12} />}
            />
          </div>
          <GroupLabels titles={[String(index + 1)]} isOneOfMany>
            <AnyField
              field={{ ...item, title: item.title || field.title }}
              path={[...path, index]}
              value={one}
              isRequired
            />
          </GroupLabels>
        </EntryForm>
      ))}
      {rows.length === 0 ? (
        <Button
          size="small"
          look="quiet"
          icon={<Plus size={12} />}
          disabled={isLocked}
          onClick={() => draft.add(0, emptyValue(item))}
        >
          Add one
        </Button>
      ) : null}
    </Group>
  );
}

interface ShortListProps {
  field: Field;
  label: string;
  item: Field;
  items: readonly Json[];
  isLocked: boolean;
  onChange: (items: Json[] | undefined) => void;
}

/** Words or numbers as chips: chosen where there is a choice; typed, enter adds one and backspace in the empty box takes the last away. */
function ShortList({ field, label, item, items, isLocked, onChange }: ShortListProps) {
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
    const value: Json = Number.isFinite(number) ? number : word;
    if (!items.includes(value)) onChange([...items, value]);
    setText("");
  };
  const remove = (index: number) => {
    const rest = items.toSpliced(index, 1);
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
