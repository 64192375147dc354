import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText } from "@/catalog/shapes";
import { Select, type SelectOption } from "@/ui/Select";
import { useForm } from "./FormContext";

interface ChoiceWidgetProps {
  id: string;
  label: string;
  field: Extract<Field, { shape: "choice" }>;
  value: Json | undefined;
  isRequired: boolean;
  isDisabled: boolean;
  onChange: (value: Json | undefined) => void;
}

const UNSET = "";
const FOREIGN = "foreign";

/** One of the values that the schema lists; a value that is none of them is shown and kept. */
export function ChoiceWidget({
  id,
  label,
  field,
  value,
  isRequired,
  isDisabled,
  onChange,
}: ChoiceWidgetProps) {
  const form = useForm();
  const index = field.choices.findIndex((choice) => choice.value === value);
  const isForeign = value !== undefined && value !== null && index < 0;
  const byDefault = defaultText(field);
  const hidden = field.choosesFrom === "algorithms" ? form.hidden.algorithms : null;
  const options: SelectOption<string>[] = field.choices
    .map((choice, place) => ({ value: String(place), label: choice.label }))
    .filter((_, place) => place === index || !hidden?.has(String(field.choices[place]?.value)));
  if (isForeign) options.unshift({ value: FOREIGN, label: String(value) });
  if (!isRequired || value === undefined) {
    const unset = byDefault === "" ? "choose…" : `${byDefault} (default)`;
    options.unshift({ value: UNSET, label: unset, isUnset: true });
  }
  return (
    <Select
      id={id}
      label={label}
      value={isForeign ? FOREIGN : index < 0 ? UNSET : String(index)}
      options={options}
      isDisabled={isDisabled}
      onChange={(chosen) => {
        if (chosen !== FOREIGN) onChange(field.choices[Number(chosen || Number.NaN)]?.value);
      }}
    />
  );
}
