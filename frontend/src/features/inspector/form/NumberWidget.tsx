import { useEffect, useRef, useState } from "react";
import { numberProblem, readNumber } from "@/catalog/numberText";
import type { Field } from "@/catalog/schema";
import { defaultText } from "@/catalog/shapes";
import { WIDE_CONTROL } from "@/ui/control";
import type { WidgetProps } from "./FormContext";

type NumberField = Extract<Field, { shape: "number" }>;

interface NumberWidgetProps extends Omit<WidgetProps<NumberField>, "path" | "isRequired"> {
  keepsWrong: boolean;
  isSaid: boolean;
}

/** What can still become a number as it is typed: `-`, `.`, `3e-`. */
const BEGUN = /^[+-]?(?:\d+\.?\d*|\.\d*)?(?:e[+-]?)?$/i;

/**
 * A number as text, so that `3e-4` can be typed; arrows step it. What is none is written as it is, so that the
 * loop counts as wrong until it is mended; what may become one waits until the field is left.
 */
export function NumberWidget(props: NumberWidgetProps) {
  const { id, label, field, value, isDisabled, keepsWrong, isSaid, onChange } = props;
  const isText = typeof value === "string";
  const shown = typeof value === "number" || isText ? String(value) : "";
  const [text, setText] = useState(shown);
  const [isTypedWrong, setWrong] = useState(false);
  const isWrong =
    isTypedWrong ||
    isText ||
    (field.isWhole && typeof value === "number" && !Number.isInteger(value));
  const written = useRef(value);
  const problemId = `${id}-problem`;

  // What was typed here stays as typed ("3e-4"); what comes from elsewhere replaces it.
  useEffect(() => {
    if (value === written.current) return;
    written.current = value;
    setText(shown);
    setWrong(false);
  }, [value, shown]);

  const keep = (typed: number | string) => {
    written.current = typed;
    onChange(typed);
  };
  const write = (typed: string) => {
    setText(typed);
    const isBad = numberProblem(field, typed) !== null;
    setWrong(isBad);
    if (isBad) {
      const typedText = typed.trim();
      const asNumber = Number(typedText);
      if (keepsWrong && Number.isFinite(asNumber)) keep(asNumber);
      else if (keepsWrong && !BEGUN.test(typedText)) keep(typedText);
      return;
    }
    const number = readNumber(field, typed);
    written.current = number;
    onChange(number);
  };

  const step = (event: React.KeyboardEvent) => {
    const by = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const from = Number(text === "" ? (field.fallback ?? field.min ?? 0) : text);
    if (Number.isFinite(from)) write(String(stepped(from, by, field)));
  };

  const input = (
    <input
      id={id}
      aria-label={label}
      aria-invalid={isWrong || undefined}
      aria-describedby={isWrong && !isSaid ? problemId : undefined}
      inputMode={field.isWhole ? "numeric" : "decimal"}
      autoComplete="off"
      className={`${WIDE_CONTROL} tabular ${field.unit ? "pr-14" : ""}`}
      value={text}
      placeholder={defaultText(field)}
      disabled={isDisabled}
      onBlur={() => {
        if (!isWrong) setText(shown);
        else if (keepsWrong && text.trim() !== shown) keep(text.trim());
      }}
      onChange={(event) => write(event.target.value)}
      onKeyDown={step}
    />
  );
  const problem =
    isWrong && !isSaid ? (
      <span id={problemId} className="mt-1 block w-full text-error text-xs">
        {numberProblem(field, text)}
      </span>
    ) : null;
  if (field.widget === "slider" && field.min !== null && field.max !== null) {
    const now = typeof value === "number" ? value : Number(field.fallback ?? field.min);
    return (
      <span className="flex flex-wrap items-center gap-2">
        <input
          type="range"
          aria-label={`${label}, slider`}
          className="min-w-0 flex-1 accent-(--accent)"
          min={field.min}
          max={sliderEnd(field, now)}
          step={field.isWhole ? 1 : (sliderEnd(field, now) - field.min) / 100}
          value={now}
          disabled={isDisabled}
          onChange={(event) => write(event.target.value)}
        />
        <span className="w-16 shrink-0">{input}</span>
        {problem}
      </span>
    );
  }
  return (
    <span className="block w-full min-w-0">
      <span className="relative block">
        {input}
        {field.unit ? (
          <span className="pointer-events-none absolute inset-y-0 right-2 flex max-w-12 items-center truncate text-2xs text-faint">
            {field.unit}
          </span>
        ) : null}
      </span>
      {problem}
    </span>
  );
}

function stepped(
  from: number,
  by: 1 | -1,
  field: { isWhole: boolean; min: number | null; max: number | null },
): number {
  const size =
    field.isWhole || Math.abs(from) >= 10 ? 1 : 10 ** Math.floor(Math.log10(Math.abs(from) || 0.1));
  const next = Number((from + by * size).toPrecision(12));
  return Math.min(
    field.max ?? Number.POSITIVE_INFINITY,
    Math.max(field.min ?? Number.NEGATIVE_INFINITY, next),
  );
}

/** Twice the default is as far as a slider goes: what lies beyond is typed, and then it goes as far as may be. */
export function sliderEnd(
  { max, fallback }: Pick<NumberField, "max" | "fallback">,
  now: number,
): number {
  const most = max ?? now;
  const usual = typeof fallback === "number" && fallback > 0 ? 2 * fallback : most;
  return now > usual ? most : Math.min(most, usual);
}
