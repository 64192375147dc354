import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText } from "@/catalog/shapes";
import { WIDE_CONTROL } from "@/ui/control";
import type { Suggestion } from "./useSuggestions";

interface SelectWidgetProps {
  id: string;
  label: string;
  field: Field;
  value: Json | undefined;
  options: readonly Suggestion[];
  isRequired: boolean;
  isDisabled: boolean;
  onChange: (value: string | undefined) => void;
}

/** One of the things that the catalog or the loop has; a value that is none of them is kept. */
export function SelectWidget({
  id,
  label,
  field,
  value,
  options,
  isRequired,
  isDisabled,
  onChange,
}: SelectWidgetProps) {
  const shown = typeof value === "string" ? value : "";
  const isForeign = shown !== "" && !options.some((option) => option.value === shown);
  const unset = defaultText(field);
  return (
    <select
      id={id}
      aria-label={label}
      className={`${WIDE_CONTROL} ${shown === "" ? "text-faint" : ""} pr-1`}
      value={shown}
      title={options.find((option) => option.value === shown)?.title ?? shown}
      disabled={isDisabled}
      onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
    >
      {isRequired && shown !== "" ? null : (
        <option value="">{unset === "" || isRequired ? "choose…" : unset}</option>
      )}
      {isForeign ? <option value={shown}>{shown}</option> : null}
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.title && option.title !== option.value
            ? `${option.value} · ${option.title}`
            : option.value}
        </option>
      ))}
    </select>
  );
}
