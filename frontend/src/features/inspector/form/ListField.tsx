import { ArrowDown, ArrowUp, Plus, X } from "lucide-react";
import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText, emptyValue, isSimple } from "@/catalog/shapes";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { AnyField, type AnyFieldProps } from "./AnyField";
import { Control } from "./Control";
import { EntryForm, useDraftEntry, useDraftWhole } from "./draftEntry";
import { FieldRow } from "./FieldRow";
import { useForm } from "./FormContext";
import { Group } from "./Group";
import { GroupLabels, useLabel } from "./Labels";
import { whenLeft } from "./leaving";
import { ShortList } from "./ShortList";

interface ListFieldProps extends AnyFieldProps {
  field: Extract<Field, { shape: "list" }>;
}

/** Values in order. A pair of numbers is a row, a list of words a line of chips, anything else a group. */
export function ListField({ field, path, value, isRequired }: ListFieldProps) {
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
      <FieldRow field={field} path={path} value={value} isRequired={isRequired}>
        <div className="flex gap-1" {...whenLeft(whole.finish)}>
          {parts.map((one, index) => (
            <Control
              key={index}
              field={{ ...one, fallback: fallback[index] ?? null }}
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
      <FieldRow field={field} path={path} value={value} isRequired={isRequired} isWide>
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
  return (
    <Group
      field={field}
      path={path}
      value={value ?? (draft.begun === null ? undefined : [])}
      isRequired={isRequired}
      note={rows.length === 0 ? defaultText(field) || "none" : String(rows.length)}
      aside={
        isLocked ? null : (
          <IconButton
            label={`Add to ${label}`}
            size="small"
            onClick={() => draft.add(items.length, emptyValue(item))}
          >
            <Plus size={14} />
          </IconButton>
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
              size="small"
              className="size-5"
              disabled={isLocked || index === 0 || index === items.length}
              onClick={() => move(index, index - 1)}
            >
              <ArrowUp size={12} />
            </IconButton>
            <IconButton
              label={`Move ${label} ${index + 1} down`}
              size="small"
              className="size-5"
              disabled={isLocked || index >= items.length - 1}
              onClick={() => move(index, index + 1)}
            >
              <ArrowDown size={12} />
            </IconButton>
            <IconButton
              label={`Remove ${label} ${index + 1}`}
              size="small"
              className="size-5"
              disabled={isLocked}
              onClick={() => {
                if (index === items.length) {
                  draft.drop();
                  return;
                }
                const rest = items.filter((_, at) => at !== index);
                form.write(path, rest.length === 0 && !isRequired ? undefined : rest);
              }}
            >
              <X size={12} />
            </IconButton>
          </div>
          <GroupLabels title={String(index + 1)} isOneOfMany>
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
