import { EyeOff } from "lucide-react";
import { useMemo, useState } from "react";
import type { JsonObject } from "@/api/types";
import { sectionsOf } from "@/catalog/sections";
import { formatPlural } from "@/lib/format";
import { useCatalog } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { FormContext, useForm } from "./FormContext";
import { FormPart } from "./FormPart";
import { FormLabels } from "./Labels";
import { ObjectFields, SectionContext } from "./ObjectFields";
import { countAbove, type ObjectField } from "./shownFields";

interface FormFieldsProps {
  field: ObjectField;
  value: JsonObject;
  without?: readonly string[];
}

export function FormFields({ field, value, without = [] }: FormFieldsProps) {
  const form = useForm();
  const catalog = useCatalog();
  const [isAsked, setAsked] = useState(false);
  const parts = useMemo(() => sectionsOf(catalog, field), [catalog, field]);
  const kept = useMemo(
    () => countAbove(catalog, form, field, [], leaveOut(value, without)),
    [catalog, form, field, value, without],
  );
  const inside = useMemo(() => ({ ...form, showsChanged: isAsked }), [form, isAsked]);
  return (
    <FormContext value={inside}>
      <FormLabels form={field}>
        <SectionContext value={parts.length > 0 ? null : undefined}>
          <ObjectFields
            field={field}
            path={[]}
            value={value}
            without={[...without, ...parts.flatMap((part) => topNames(part.fields))]}
          />
        </SectionContext>
        {parts.map((part) => (
          <FormPart key={part.name} part={part} root={field} value={value} without={without} />
        ))}
      </FormLabels>
      {kept > 0 ? (
        <div className="flex items-center gap-2 border-line border-t py-1.5 text-muted text-xs">
          <EyeOff size={14} aria-hidden className="shrink-0" />
          <p className="min-w-0 flex-1">
            {isAsked
              ? "Changed values above this level are shown."
              : `${formatPlural(kept, "changed value")} hidden at this level`}
          </p>
          <Button size="small" look="quiet" onClick={() => setAsked(!isAsked)}>
            {isAsked ? "Hide" : "Show"}
          </Button>
        </div>
      ) : null}
    </FormContext>
  );
}

function topNames(fields: readonly { path: string[]; names: string[] }[]): string[] {
  return fields.filter(({ path }) => path.length === 0).flatMap(({ names }) => names);
}

function leaveOut(value: JsonObject, without: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !without.includes(name)));
}
