import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText } from "@/catalog/shapes";
import { WIDE_CONTROL } from "@/ui/control";

interface ChoiceWidgetProps {
  id: string;
  label: string;
  field: Extract<Field, { shape: "choice" }>;
  value: Json | undefined;
  isRequired: boolean;
  isDisabled: boolean;
  onChange: (value: Json | undefined) => void;
}

export function ChoiceWidget({
  id,
  label,
  field,
  value,
  isRequired,
  isDisabled,
  onChange,
}: ChoiceWidgetProps) {
  const index = field.choices.findIndex((choice) => choice.value === value);
  const isForeign = value !== undefined && value !== null && index < 0;
  const byDefault = defaultText(field);
  return (
    <select
      id={id}
      aria-label={label}
      className={`${WIDE_CONTROL} ${value === undefined ? "text-faint" : ""} pr-1`}
      value={isForeign ? "foreign" : index < 0 ? "" : String(index)}
      disabled={isDisabled}
      onChange={(event) => {
        const chosen = field.choices[Number(event.target.value)];
        onChange(event.target.value === "" || !chosen ? undefined : chosen.value);
      }}
    >
      {isRequired && value !== undefined ? null : (
        <option value="">{byDefault === "" ? "choose…" : `${byDefault} (default)`}</option>
      )}
      {isForeign ? <option value="foreign">{String(value)}</option> : null}
      {field.choices.map((choice, place) => (
        <option key={choice.label} value={place}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}
