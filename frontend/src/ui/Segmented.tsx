import { classes } from "./classes";

interface SegmentedProps<V extends string> {
  label: string;
  value: V;
  options: readonly { value: V; label: string; title?: string }[];
  onChange: (value: V) => void;
  isWide?: boolean;
}

export function Segmented<V extends string>(props: SegmentedProps<V>) {
  const { label, value, options, onChange, isWide = false } = props;
  return (
    <div
      role="radiogroup"
      aria-label={label}
      className={classes(
        "inline-flex h-7 items-stretch rounded-2 border border-line bg-sunken p-0.5",
        isWide ? "w-full" : "w-fit",
      )}
    >
      {options.map((option) => (
        <label
          key={option.value}
          title={option.title}
          className={classes(
            "flex cursor-pointer items-center justify-center whitespace-nowrap rounded-1 px-2 text-xs has-focus-visible:outline-2 has-focus-visible:outline-focus",
            isWide && "flex-1",
            option.value === value
              ? "bg-raised font-medium text-text shadow-1"
              : "text-muted hover:text-text",
          )}
        >
          <input
            type="radio"
            className="sr-only"
            name={label}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          {option.label}
        </label>
      ))}
    </div>
  );
}
