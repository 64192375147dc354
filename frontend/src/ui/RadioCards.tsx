import { useId } from "react";
import { classes } from "./classes";

interface RadioCardsProps<V extends string> {
  legend: string;
  value: V;
  options: readonly { value: V; title: string; help: string }[];
  isDisabled?: boolean;
  onChange: (value: V) => void;
}

export function RadioCards<V extends string>(props: RadioCardsProps<V>) {
  const { legend, value, options, isDisabled = false, onChange } = props;
  const name = useId();
  return (
    <fieldset className="flex w-full flex-col gap-1.5 text-left" disabled={isDisabled}>
      <legend className="pb-1.5 text-muted text-sm">{legend}</legend>
      {options.map((option) => (
        <label
          key={option.value}
          className={classes(
            "flex cursor-pointer gap-2.5 rounded-2 border px-3 py-2 has-focus-visible:outline-2 has-focus-visible:outline-focus",
            option.value === value
              ? "border-accent bg-accent-soft"
              : "border-line hover:border-line-strong",
          )}
        >
          <input
            type="radio"
            name={name}
            className="mt-1 shrink-0 accent-(--accent)"
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>
            <span className="block font-medium text-sm">{option.title}</span>
            <span className="block text-muted text-xs">{option.help}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
