import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText, isLong } from "@/catalog/shapes";
import type { Suggestion } from "@/document/suggestions";
import { Combobox } from "@/ui/Combobox";
import { WIDE_CONTROL } from "@/ui/control";
import { Select, type SelectOption } from "@/ui/Select";
import { useSuggestions } from "./useSuggestions";

interface TextWidgetProps {
  id: string;
  label: string;
  field: Field;
  value: Json | undefined;
  isRequired: boolean;
  isDisabled: boolean;
  onChange: (value: string | undefined) => void;
}

export function TextWidget(props: TextWidgetProps) {
  const { id, label, field, value, isDisabled, onChange } = props;
  const suggestions = useSuggestions(field);
  const shown =
    typeof value === "string"
      ? value
      : value === undefined || value === null
        ? ""
        : JSON.stringify(value);
  const placeholder = defaultText(field) || (field.choosesFrom === "nodes" ? "name of a node" : "");
  const isPattern = field.widget === "regex";
  const write = (typed: string) => onChange(typed === "" ? undefined : typed);
  const isChosen = field.widget === "select";
  if (suggestions.length > 0 && (isChosen || !isLong(field))) {
    return (
      <SelectWidget
        {...props}
        options={suggestions}
        placeholder={placeholder}
        {...(isChosen ? {} : { onType: write })}
      />
    );
  }
  if (isLong(field)) {
    return (
      <textarea
        id={id}
        aria-label={label}
        rows={Math.min(8, Math.max(2, rowsOf(shown)))}
        className={`${WIDE_CONTROL} h-auto resize-y py-1 ${isPattern ? "break-all font-mono text-xs" : ""}`}
        spellCheck={!isPattern}
        value={shown}
        placeholder={placeholder}
        disabled={isDisabled}
        onChange={(event) => write(event.target.value)}
        onKeyDown={(event) => {
          if (isPattern && event.key === "Enter") event.preventDefault();
        }}
      />
    );
  }
  return (
    <input
      id={id}
      aria-label={label}
      className={WIDE_CONTROL}
      value={shown}
      placeholder={placeholder}
      title={shown}
      disabled={isDisabled}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => write(event.target.value)}
    />
  );
}

const LETTERS_A_ROW = 44;

function rowsOf(text: string): number {
  const rows = text.split("\n").map((line) => Math.ceil(Math.max(1, line.length) / LETTERS_A_ROW));
  return rows.reduce((all, count) => all + count, 0);
}

interface SelectWidgetProps {
  id: string;
  label: string;
  field: Field;
  value: Json | undefined;
  options: readonly Suggestion[];
  isRequired: boolean;
  isDisabled: boolean;
  placeholder?: string;
  onChange: (value: string | undefined) => void;
  /** Takes what is typed as well; the list is then searched. */
  onType?: (typed: string) => void;
}

/** One of the things that the catalog or the loop has; a value that is none of them is kept. */
function SelectWidget({
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
