import type { JsonObject } from "@/api/types";
import { readSchema, sectionSchema } from "@/catalog/schema";
import { useDocument, useOpenLoop } from "@/document/context";
import { problemsAt } from "@/document/problems";
import { isObject } from "@/lib/paths";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { useValueForm } from "./useValueForm";

interface LoopSectionProps {
  title: string;
  /** Key of the loop and of the catalog's schemas. */
  part: string;
  without?: readonly string[];
}

const NOTHING: JsonObject = {};
const ALL: readonly string[] = [];

export function LoopSection({ title, part, without = ALL }: LoopSectionProps) {
  const { catalog } = useOpenLoop();
  const value = useDocument((state) => state.document.rest[part]);
  const form = useValueForm([part]);
  const schema = sectionSchema(catalog, part);
  const field = schema ? readSchema(schema) : null;
  if (field?.shape !== "object") return null;
  return (
    <section
      aria-label={title}
      data-field={part}
      className="border-line border-t py-2 first:border-t-0"
    >
      <h3 className="py-1 font-semibold text-xs">{title}</h3>
      <FieldProblems problems={problemsAt(form.diagnostics, part, true)} />
      <FormContext value={form}>
        <FormFields field={field} value={isObject(value) ? value : NOTHING} without={without} />
      </FormContext>
    </section>
  );
}
