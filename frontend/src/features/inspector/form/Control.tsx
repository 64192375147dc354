import { useState } from "react";
import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { defaultText, isLong } from "@/catalog/shapes";
import { problemsAt } from "@/document/problems";
import { isTemplate } from "@/document/references";
import type { Suggestion } from "@/document/suggestions";
import { sum } from "@/lib/statistics";
import { Combobox } from "@/ui/Combobox";
import { WIDE_CONTROL } from "@/ui/control";
import { Select, type SelectOption } from "@/ui/Select";
import { Switch } from "@/ui/Switch";
import { CodeWidget } from "./CodeWidget";
import { ColumnChips } from "./ColumnChips";
import { placeOf, useForm, type WidgetProps } from "./FormContext";
import { JsonWidget } from "./JsonWidget";
import { whenLeft } from "./leaving";
import { NumberWidget } from "./NumberWidget";
import { useSuggestions } from "./useSuggestions";

interface ControlProps extends Omit<WidgetProps, "id" | "isDisabled" | "onChange"> {
  onChange?: WidgetProps["onChange"];
}

export function Control(props: ControlProps) {
  const { path, value, isRequired, onChange } = props;
  const form = useForm();
  const { id } = placeOf(form, path);
  const write = onChange ?? ((next: Json | undefined) => form.write(path, next));
  // What it was when it was emptied; that it is needed is told when it is left empty.
  const [emptied, setEmptied] = useState<{ value: Json | undefined } | null>(null);
  const isHeld = emptied !== null && emptied.value === value && value !== undefined;
  const take = (next: Json | undefined) => {
    const isHere = document.activeElement?.id === id;
    const waits = isRequired && isHere && (next === undefined || next === "");
    setEmptied(waits ? { value } : null);
    if (!waits) write(next);
  };
  return (
    <div
      className="contents"
      {...whenLeft(() => {
        if (!isHeld) return;
        setEmptied(null);
        write(undefined);
      })}
    >
      <Widget
        {...props}
        id={id}
        value={isHeld ? undefined : value}
        isDisabled={form.isLocked(props.field)}
        onChange={take}
      />
    </div>
  );
}

function Widget(props: WidgetProps) {
  const form = useForm();
  const { field, path, value, isDisabled, onChange } = props;
  if (field.widget === "code") return <CodeWidget {...props} />;
  switch (field.shape) {
    case "number":
      return (
        <NumberWidget
          {...props}
          field={field}
          keepsWrong={form.keepsWrong}
          isSaid={problemsAt(form.diagnostics, placeOf(form, path).full, true).length > 0}
        />
      );
    case "flag": {
      const isOn = value === undefined || value === null ? field.fallback === true : value === true;
      return (
        <span className="flex h-7 items-center gap-2">
          <Switch
            id={props.id}
            label={props.label}
            isOn={isOn}
            isDisabled={isDisabled}
            onChange={onChange}
          />
          {value === undefined && field.fallback === null ? (
            <span className="text-faint text-xs">auto</span>
          ) : null}
        </span>
      );
    }
    case "choice":
      return <ChoiceWidget {...props} field={field} />;
    case "constant":
      return <span className="text-muted text-xs">{String(field.value)}</span>;
    case "text":
      return <TextWidget {...props} />;
    default:
      return <JsonWidget {...props} />;
  }
}

const UNSET = "";
const FOREIGN = "foreign";

/** One of the values that the schema lists; a value that is none of them is shown and kept. */
function ChoiceWidget(props: WidgetProps<Extract<Field, { shape: "choice" }>>) {
  const { id, label, field, value, isRequired, isDisabled, onChange } = props;
  const form = useForm();
  const index = field.choices.findIndex((choice) => choice.value === value);
  const isForeign = value !== undefined && value !== null && index < 0;
  const byDefault = defaultText(field);
  const hidden = field.choosesFrom === "algorithms" ? form.hidden.algorithms : null;
  const options: SelectOption<string>[] = field.choices
    .map((choice, place) => ({ value: String(place), label: choice.label }))
    .filter(
      (_, place) => place === index || !hidden?.includes(String(field.choices[place]?.value)),
    );
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

function TextWidget(props: WidgetProps) {
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
    const area = (
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
    if (!isTemplate(field) || isDisabled) return area;
    return (
      <>
        {area}
        <ColumnChips field={id} text={shown} onChange={write} />
      </>
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
  return sum(text.split("\n").map((line) => Math.ceil(Math.max(1, line.length) / LETTERS_A_ROW)));
}

interface SelectWidgetProps extends WidgetProps {
  options: readonly Suggestion[];
  placeholder: string;
  onType?: (typed: string) => void;
}

/** One of the things that the catalog or the loop has; a value that is none of them is kept. */
function SelectWidget(props: SelectWidgetProps) {
  const { id, label, value, options, isRequired, isDisabled, placeholder, onChange, onType } =
    props;
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
