import type { Json } from "@/api/types";
import { problemsAt } from "@/document/problems";
import { joinPath, type Path } from "@/lib/paths";
import { FieldProblems } from "./FieldProblems";
import { useForm } from "./FormContext";
import { fieldId } from "./ids";
import { JsonWidget } from "./JsonWidget";
import { useLabel } from "./Labels";
import { RemoveField } from "./RemoveField";

/** A key that the catalog does not know. It is kept, shown and can be removed. */
export function UnknownField({
  title,
  path,
  value,
}: {
  title: string;
  path: Path;
  value: Json | undefined;
}) {
  const form = useForm();
  const label = useLabel(title);
  // Nobody says of it that it may change, so whatever locks fields locks it.
  const isLocked = form.lockReason !== null;
  const full = joinPath([...form.base, ...path]);
  return (
    <div data-field={full} className="py-1">
      <div className="flex items-center gap-2">
        <label
          htmlFor={fieldId(form.base, path)}
          className="w-[42%] shrink-0 truncate text-error text-xs"
          title={`${title} is not a known field`}
        >
          {title}
        </label>
        <JsonWidget
          id={fieldId(form.base, path)}
          label={label}
          value={value}
          isDisabled={isLocked}
          onChange={(next) => form.write(path, next)}
        />
        <RemoveField name={label} path={path} isLocked={isLocked} />
      </div>
      <FieldProblems problems={problemsAt(form.diagnostics, full, false)} />
    </div>
  );
}
