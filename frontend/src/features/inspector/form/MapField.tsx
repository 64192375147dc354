import { Plus } from "lucide-react";
import { useState } from "react";
import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { emptyValue, isSimple } from "@/catalog/shapes";
import { problemsAt } from "@/document/problems";
import { isObject, type Path } from "@/lib/paths";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { AnyField, type AnyFieldProps } from "./AnyField";
import { Control } from "./Control";
import { EntryForm, useDraftEntry } from "./draftEntry";
import { FieldProblems } from "./FieldProblems";
import { placeOf, useForm } from "./FormContext";
import { Group } from "./Group";
import { GroupLabels, useLabel } from "./Labels";
import { isEmpty, useEntered } from "./leaving";
import { RemoveField } from "./RemoveField";

export function MapField(props: AnyFieldProps<"map">) {
  const { field, path, value } = props;
  const form = useForm();
  const label = useLabel(field.title);
  const [name, setName] = useState("");
  const record = isObject(value) ? value : {};
  const draft = useDraftEntry(path);
  const written = Object.keys(record).filter((key) => record[key] !== undefined);
  const keys =
    draft.begun === null || written.includes(String(draft.begun.key))
      ? written
      : [...written, String(draft.begun.key)];
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

  const rename = (from: string, to: string) => {
    const entries = Object.entries(record).map(([key, one]) => [key === from ? to : key, one]);
    form.write(path, Object.fromEntries(entries));
  };
  const add = () => {
    if (newKey === "" || isTaken) return;
    draft.add(newKey, item.shape === "json" ? "" : emptyValue(item));
    setName("");
  };
  return (
    <Group
      {...props}
      value={value ?? (draft.begun === null ? undefined : {})}
      note={keys.length === 0 ? "none" : String(keys.length)}
    >
      {keys.map((key) => {
        const isBegun = draft.begun?.key === key;
        const entry = isBegun ? draft.begun?.value : record[key];
        return (
          <EntryForm key={key} draft={draft} isBegun={isBegun}>
            <GroupLabels isOneOfMany>
              {isFlat ? (
                <MapEntry
                  name={key}
                  item={item}
                  path={[...path, key]}
                  value={entry}
                  isLocked={isLocked}
                  taken={keys}
                  onRename={isBegun || isLocked ? undefined : (to) => rename(key, to)}
                  onRemove={isBegun ? draft.drop : undefined}
                />
              ) : (
                <AnyField
                  field={{ ...item, title: key }}
                  path={[...path, key]}
                  value={entry}
                  isRequired={false}
                />
              )}
            </GroupLabels>
          </EntryForm>
        );
      })}
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
              icon={<Plus size={14} />}
            />
          </div>
          {isTaken ? <p className="pt-0.5 text-error text-xs">“{newKey}” already exists.</p> : null}
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
  taken: readonly string[];
  onRename: ((to: string) => void) | undefined;
  onRemove: (() => void) | undefined;
}

function MapEntry(props: MapEntryProps) {
  const { name, item, path, value, isLocked, taken, onRename, onRemove } = props;
  const form = useForm();
  const { full, id } = placeOf(form, path);
  const label = useLabel(name);
  const { isEntered, watch } = useEntered();
  const isBlamed = !isEntered || !isEmpty(value);
  return (
    <div data-field={full} className="py-0.5" {...watch}>
      <div className="flex items-center gap-2">
        <span className="w-[44%] shrink-0">
          {onRename ? (
            <MapKey name={name} label={label} taken={taken} onRename={onRename} />
          ) : (
            <label htmlFor={id} className="block truncate font-mono text-xs" title={name}>
              {name}
            </label>
          )}
        </span>
        <Control
          field={item}
          path={path}
          value={value}
          label={label}
          isRequired
          onChange={(next) => form.write(path, next ?? (item.shape === "text" ? "" : next))}
        />
        <RemoveField name={label} path={path} isLocked={isLocked} onRemove={onRemove} />
      </div>
      <FieldProblems problems={isBlamed ? problemsAt(form.diagnostics, full, false) : []} />
    </div>
  );
}

interface MapKeyProps {
  name: string;
  label: string;
  taken: readonly string[];
  onRename: (to: string) => void;
}

/** The name of an entry, taken over when it is left; one that is empty or taken goes back to what it was. */
function MapKey({ name, label, taken, onRename }: MapKeyProps) {
  const [typed, setTyped] = useState(name);
  const to = typed.trim();
  const isTaken = to !== name && taken.includes(to);
  const leave = () => {
    if (to === "" || isTaken) setTyped(name);
    else if (to !== name) onRename(to);
  };
  return (
    <input
      aria-label={`Name of ${label}`}
      aria-invalid={isTaken || undefined}
      title={isTaken ? `“${to}” already exists.` : name}
      className={`${WIDE_CONTROL} border-transparent bg-transparent px-1 font-mono text-xs`}
      spellCheck={false}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={leave}
      onKeyDown={(event) => event.key === "Enter" && leave()}
    />
  );
}
