import { useState } from "react";
import type { Json } from "@/api/types";
import { WIDE_CONTROL } from "@/ui/control";
import type { WidgetProps } from "./FormContext";

type JsonWidgetProps = Omit<WidgetProps, "field" | "path" | "isRequired">;

export function JsonWidget({ id, label, value, isDisabled, onChange }: JsonWidgetProps) {
  const shown =
    value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const [typed, setTyped] = useState<string | null>(null);
  const take = () => {
    if (typed !== null && typed !== shown) onChange(readLoose(typed));
    setTyped(null);
  };
  return (
    <input
      id={id}
      aria-label={label}
      className={`${WIDE_CONTROL} font-mono text-xs`}
      value={typed ?? shown}
      placeholder="text, number, JSON"
      disabled={isDisabled}
      spellCheck={false}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={take}
      onKeyDown={(event) => event.key === "Enter" && take()}
    />
  );
}

/** JSON where it is JSON, a number where it is one, else the text itself. */
function readLoose(text: string): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  try {
    return JSON.parse(trimmed) as Json;
  } catch {
    const number = Number(trimmed);
    return Number.isFinite(number) ? number : text;
  }
}
