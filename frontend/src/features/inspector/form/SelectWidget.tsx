import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText } from "@/catalog/shapes";
import type { Suggestion } from "@/document/suggestions";
import { Combobox } from "@/ui/Combobox";
import { Select, type SelectOption } from "@/ui/Select";

interface SelectWidgetProps {
  id: string;
  label: string;
  field: Field;
  value: Json | undefined;
  options: readonly Suggestion[];
  isRequired: boolean;
  isDisabled: boolean;
  /** What it says where nothing is set. */
  placeholder?: string;
  onChange: (value: string | undefined) => void;
  /** Takes what is typed as well; the list is then searched. */
  onType?: (typed: string) => void;
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
  placeholder = defaultText(field),
  onChange,
  onType,
}: SelectWidgetProps) {
  const shown = typeof value === "string" ? value : "";
  const listed: SelectOption<string>[] = options.map((option) => ({
    value: option.value,
    label: option.value,
    help: option.title !== option.value ? option.title : undefined,
  }));
  if (shown !== "" && !options.some((option) => option.value === shown)) {
    listed.unshift({ value: shown, label: shown });
  }
  if (!isRequired || shown === "") {
    const label = placeholder === "" || isRequired ? "choose…" : placeholder;
    listed.unshift({ value: "", label, isUnset: true });
  }
  const shared = {
    id,
    label,
    value: shown,
    options: listed,
    isDisabled,
    onChange: (chosen: string) => onChange(chosen === "" ? undefined : chosen),
  };
  return onType ? (
    <Combobox {...shared} placeholder="Search, or type another" onType={onType} />
  ) : (
    <Select {...shared} />
  );
}
