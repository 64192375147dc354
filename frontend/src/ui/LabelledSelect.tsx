import { Select, type SelectOption } from "./Select";

interface LabelledSelectProps<V extends string> {
  label: string;
  value: V;
  options: readonly SelectOption<V>[];
  onChange: (value: V) => void;
}

export function LabelledSelect<V extends string>(props: LabelledSelectProps<V>) {
  return (
    <div className="flex max-w-72 shrink-0 items-center gap-2">
      <span aria-hidden="true">{props.label}</span>
      <Select {...props} />
    </div>
  );
}
