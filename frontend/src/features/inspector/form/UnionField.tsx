import type { Field } from "@/catalog/schema";
import { changeVariant, chosenVariant, defaultText, isLong, isSimple } from "@/catalog/shapes";
import { isObject } from "@/lib/paths";
import { WIDE_CONTROL } from "@/ui/control";
import { AnyField, type AnyFieldProps } from "./AnyField";
import { Control } from "./Control";
import { FieldRow } from "./FieldRow";
import { useForm } from "./FormContext";
import { Group } from "./Group";
import { fieldId } from "./ids";
import { ObjectFields } from "./ObjectFields";
import { TypeNote } from "./TypeNote";

interface UnionFieldProps extends AnyFieldProps {
  field: Extract<Field, { shape: "tagged" | "variants" }>;
}

/** One of several shapes: a choice of the shape, and the fields of the chosen one. */
export function UnionField({ field, path, value, isRequired }: UnionFieldProps) {
  const form = useForm();
  const chosen = chosenVariant(field, value);
  const tag = field.shape === "tagged" ? field.tag : null;
  const fallback = chosenVariant(field, field.fallback);

  const select = (
    <select
      id={fieldId(form.base, path)}
      aria-label={`${field.title}, type`}
      className={`${WIDE_CONTROL} ${chosen ? "" : "text-faint"} pr-1`}
      value={chosen?.key ?? ""}
      disabled={form.isLocked(field)}
      onChange={(event) => {
        const variant = field.variants.find((one) => one.key === event.target.value);
        form.write(path, variant ? changeVariant(value, variant, tag) : undefined);
      }}
    >
      {chosen && isRequired ? null : (
        <option value="">
          {fallback
            ? `${defaultText({ ...field, fallback: field.fallback }) || fallback.title} (default)`
            : isRequired
              ? "choose…"
              : "not set"}
        </option>
      )}
      {field.variants.map((variant) => (
        <option key={variant.key} value={variant.key}>
          {variant.title}
        </option>
      ))}
    </select>
  );

  const isFlat = field.variants.every(
    (variant) => isSimple(variant.field) && !isLong(variant.field),
  );
  if (isFlat && tag === null) {
    return (
      <FieldRow field={field} path={path} value={value} isRequired={isRequired}>
        <div className="flex gap-1">
          <span className="w-24 shrink-0">{select}</span>
          {chosen ? (
            <Control
              field={chosen.field}
              path={path}
              value={value}
              label={field.title}
              isRequired={isRequired}
            />
          ) : null}
        </div>
      </FieldRow>
    );
  }
  return (
    <Group
      field={field}
      path={path}
      value={value}
      isRequired={isRequired}
      startsOpen={value !== undefined && path.length <= 2}
      aside={<span className="w-[calc(50%-4px)] shrink-0">{select}</span>}
    >
      {chosen ? <TypeNote text={chosen.field.help} /> : null}
      {chosen?.field.shape === "object" ? (
        <ObjectFields
          field={chosen.field}
          path={path}
          value={isObject(value) ? value : {}}
          without={tag ? [tag] : []}
        />
      ) : chosen ? (
        <AnyField
          field={{ ...chosen.field, title: chosen.title }}
          path={path}
          value={value}
          isRequired={false}
        />
      ) : null}
    </Group>
  );
}
