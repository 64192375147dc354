import { Plus } from "lucide-react";
import { useState } from "react";
import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { emptyValue, isSimple } from "@/catalog/shapes";
import { problemsAt } from "@/document/problems";
import { isObject, joinPath, type Path } from "@/lib/paths";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { AnyField, type AnyFieldProps } from "./AnyField";
import { Control } from "./Control";
import { FieldProblems } from "./FieldProblems";
import { useForm } from "./FormContext";
import { Group } from "./Group";
import { fieldId } from "./ids";
import { GroupLabels, useLabel } from "./Labels";
import { RemoveField } from "./RemoveField";

interface MapFieldProps extends AnyFieldProps {
  field: Extract<Field, { shape: "map" }>;
}

/** Values by name; the user gives the names. */
export function MapField({ field, path, value, isRequired }: MapFieldProps) {
  const form = useForm();
  const label = useLabel(field.title);
  const [name, setName] = useState("");
  const record = isObject(value) ? value : {};
  const keys = Object.keys(record).filter((key) => record[key] !== undefined);
  // What a mapping is chosen from are its values.
  const own = field.item();
  const item = {
    ...own,
    widget: field.widget ?? own.widget,
    choosesFrom: field.choosesFrom ?? own.choosesFrom,
  };
  const isFlat = isSimple(item) || item.shape === "json";
  const isLocked = form.isLocked(field);
  const newKey = name.trim();
  const isTaken = keys.includes(newKey);

  const add = () => {
    if (newKey === "" || isTaken) return;
    form.write([...path, newKey], item.shape === "json" ? "" : emptyValue(item));
    setName("");
  };
  return (
    <Group
      field={field}
      path={path}
      value={value}
      isRequired={isRequired}
      note={keys.length === 0 ? "none" : String(keys.length)}
    >
      {keys.map((key) => (
        <GroupLabels key={key} isOneOfMany>
          {isFlat ? (
            <MapEntry
              name={key}
              item={item}
              path={[...path, key]}
              value={record[key]}
              isLocked={isLocked}
            />
          ) : (
            <AnyField
              field={{ ...item, title: key }}
              path={[...path, key]}
              value={record[key]}
              isRequired={false}
            />
          )}
        </GroupLabels>
      ))}
      {isLocked ? null : (
        <div className="py-1">
          <div className="flex items-center gap-1">
            <input
              aria-label={`New name in ${label}`}
              aria-invalid={isTaken || undefined}
              className={`${WIDE_CONTROL} font-mono text-xs`}
              placeholder="new name"
              value={name}
              onChange={(event) => setName(event.target.value)}
              onKeyDown={(event) => event.key === "Enter" && add()}
            />
            <IconButton
              label={`Add to ${label}`}
              size="small"
              disabled={newKey === "" || isTaken}
              onClick={add}
            >
              <Plus size={14} />
            </IconButton>
          </div>
          {isTaken ? (
            <p className="pt-0.5 text-error text-xs">“{newKey}” is there already.</p>
          ) : null}
        </div>
      )}
    </Group>
  );
}

interface MapEntryProps {
  name: string;
  item: Field;
  path: Path;
  value: Json | undefined;
  isLocked: boolean;
}

/** A single value by its name, with what is wrong with it. */
function MapEntry({ name, item, path, value, isLocked }: MapEntryProps) {
  const form = useForm();
  const id = fieldId(form.base, path);
  const label = useLabel(name);
  const full = joinPath([...form.base, ...path]);
  return (
    <div data-field={full} className="py-0.5">
      <div className="flex items-center gap-2">
        <label htmlFor={id} className="w-[44%] shrink-0 truncate font-mono text-xs" title={name}>
          {name}
        </label>
        <Control field={item} path={path} value={value} label={label} isRequired />
        <RemoveField name={label} path={path} isLocked={isLocked} />
      </div>
      <FieldProblems problems={problemsAt(form.diagnostics, full, false)} />
    </div>
  );
}
