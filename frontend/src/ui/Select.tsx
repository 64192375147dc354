import { ChevronDown } from "lucide-react";
import { classes } from "./classes";
import { CHOSEN } from "./control";
import { loadable, usePart } from "./loadable";
import type { SelectProps } from "./selectParts";

export type { SelectOption } from "./selectParts";

export const selectParts = loadable(() => import("./selectParts"));

/** One of several; where they are many, the list is searched by typing. What opens comes right after the page. */
export function Select<V extends string>(props: SelectProps<V>) {
  const parts = usePart(selectParts);
  return parts ? <parts.Select {...props} /> : <Closed {...props} />;
}

function Closed<V extends string>(props: SelectProps<V>) {
  const { ref, id, label, value, options, isDisabled = false, className } = props;
  const chosen = options.find((option) => option.value === value);
  return (
    <button
      ref={ref}
      id={id}
      type="button"
      role="combobox"
      aria-label={label}
      aria-expanded={false}
      aria-controls={undefined}
      disabled={isDisabled}
      className={classes(CHOSEN, !chosen || chosen.isUnset ? "text-faint" : "text-text", className)}
    >
      <span className="min-w-0 flex-1 wrap-anywhere">{chosen?.label ?? ""}</span>
      <ChevronDown size={14} className="shrink-0 text-faint" aria-hidden="true" />
    </button>
  );
}
