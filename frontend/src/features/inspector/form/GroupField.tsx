import { Plus } from "lucide-react";
import { useMemo } from "react";
import { emptyValue } from "@/catalog/shapes";
import { isObject } from "@/lib/paths";
import { Button } from "@/ui/Button";
import type { AnyFieldProps } from "./AnyField";
import { FormContext, type FormSettings, useForm } from "./FormContext";
import { Group } from "./Group";
import { useLabel } from "./Labels";
import { ObjectFields } from "./ObjectFields";

export function GroupField(props: AnyFieldProps<"object">) {
  const { field, path, value } = props;
  const form = useForm();
  const label = useLabel(field.title);
  const canBeOff = field.isNullable && (field.fallback ?? null) === null;
  const isOff = canBeOff && (value === undefined || value === null);
  const inside = useMemo(
    () => (canBeOff ? keeping(form, path.length) : form),
    [form, canBeOff, path.length],
  );
  return (
    <Group
      {...props}
      note={isOff ? "off" : ""}
      startsOpen={!isOff && (path.length <= 1 || (value !== undefined && path.length <= 3))}
      aside={
        isOff && !form.isLocked(field) ? (
          <Button
            size="small"
            look="quiet"
            icon={<Plus size={12} />}
            aria-label={`Set ${label}`}
            onClick={() => form.write(path, emptyValue(field))}
          >
            Set
          </Button>
        ) : null
      }
    >
      {isOff ? (
        <p className="py-1 text-faint text-xs">{field.help || "Not set."}</p>
      ) : (
        <FormContext value={inside}>
          <ObjectFields field={field} path={path} value={isObject(value) ? value : {}} />
        </FormContext>
      )}
    </Group>
  );
}

/** The form for the inside of a group that is not switched off by emptying its last field. */
function keeping(form: FormSettings, keys: number): FormSettings {
  return {
    ...form,
    write: (path, value, keep = 0) => form.write(path, value, Math.max(keep, keys)),
  };
}
