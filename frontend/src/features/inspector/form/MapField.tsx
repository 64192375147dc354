import { Plus, X } from "lucide-react";
import { useState } from "react";
import { isObject } from "@/lib/paths";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import type { Field } from "../schema";
import { emptyValue, isSimple } from "../shapes";
import { AnyField, type AnyFieldProps } from "./AnyField";
import { Control } from "./Control";
import { useForm } from "./FormContext";
import { Group } from "./Group";
import { fieldId } from "./ids";

interface MapFieldProps extends AnyFieldProps {
  field: Extract<Field, { shape: "map" }>;
}

/** Values by name; the user gives the names. */
export function MapField({ field, path, value, isRequired }: MapFieldProps) {
  const form = useForm();
  const [name, setName] = useState("");
  const record = isObject(value) ? value : {};
  const keys = Object.keys(record).filter((key) => record[key] !== undefined);
  const item = field.item();
  const isFlat = isSimple(item) || item.shape === "json";
  const isLocked = form.isLocked(field);

  const add = () => {
    const key = name.trim();
    if (key === "" || key in record) return;
    form.write([...path, key], item.shape === "json" ? "" : emptyValue(item));
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
      {keys.map((key) =>
        isFlat ? (
          <div
            key={key}
            data-field={[...form.base, ...path, key].join(".")}
            className="flex items-center gap-2 py-0.5"
          >
            <label
              htmlFor={fieldId(form.base, [...path, key])}
              className="w-[44%] shrink-0 truncate font-mono text-xs"
              title={key}
            >
              {key}
            </label>
            <Control
              field={item}
              path={[...path, key]}
              value={record[key]}
              label={key}
              isRequired
            />
            <IconButton
              label={`Remove ${key}`}
              size="small"
              disabled={isLocked}
              onClick={() => form.write([...path, key], undefined)}
            >
              <X size={12} />
            </IconButton>
          </div>
        ) : (
          <AnyField
            key={key}
            field={{ ...item, title: key }}
            path={[...path, key]}
            value={record[key]}
            isRequired={false}
          />
        ),
      )}
      {isLocked ? null : (
        <div className="flex items-center gap-1 py-1">
          <input
            aria-label={`New name in ${field.title}`}
            className={`${WIDE_CONTROL} font-mono text-xs`}
            placeholder="new name"
            value={name}
            onChange={(event) => setName(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && add()}
          />
          <IconButton
            label={`Add to ${field.title}`}
            size="small"
            disabled={name.trim() === ""}
            onClick={add}
          >
            <Plus size={14} />
          </IconButton>
        </div>
      )}
    </Group>
  );
}
