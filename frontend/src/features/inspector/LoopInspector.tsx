import type { JsonObject } from "@/api/types";
import { readSchema, sectionSchema } from "@/catalog/schema";
import { problemsAt } from "@/document/problems";
import { isObject } from "@/lib/paths";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { ObjectFields } from "./form/ObjectFields";
import { InspectorHeader } from "./InspectorHeader";
import { useProblems } from "./useProblems";
import { useValueForm } from "./useValueForm";

const SCHEDULE_LISTS = ["phases", "triggers", "anneal"];

/** The loop as a whole: what it is called, where and when it runs. */
export function LoopInspector() {
  const name = useDocument((state) => state.document.name);
  const problems = useProblems().loop;
  return (
    <>
      <InspectorHeader
        title={
          <h2 className="truncate font-semibold text-sm" title={name}>
            {name}
          </h2>
        }
        subtitle="Loop"
      />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 py-2">
        <FieldProblems problems={problems.filter((problem) => !problem.field)} />
        <LoopFacts />
        <LoopSection title="Schedule" part="schedule" without={SCHEDULE_LISTS} />
        <LoopSection title="Hardware" part="hardware" />
        <LoopSection title="Run" part="run" />
      </div>
    </>
  );
}

/** Parts of a loop that have places of their own. */
const ELSEWHERE = [
  ...["coloop", "name", "mode", "nodes", "edges"],
  ...["schedule", "hardware", "run", "layout"],
];

/** Description and the like, where the catalog has a schema of the loop itself. */
function LoopFacts() {
  const { catalog } = useOpenLoop();
  const rest = useDocument((state) => state.document.rest);
  const form = useValueForm([]);
  const schema = catalog.schema.loop;
  const field = schema ? readSchema(schema) : null;
  if (field?.shape !== "object") return null;
  return (
    <FormContext value={form}>
      <ObjectFields field={field} path={[]} value={rest} without={ELSEWHERE} />
    </FormContext>
  );
}

interface LoopSectionProps {
  title: string;
  /** Key of the loop and of the catalog's schemas. */
  part: string;
  without?: readonly string[];
}

const NOTHING: JsonObject = {};
const ALL: readonly string[] = [];

function LoopSection({ title, part, without = ALL }: LoopSectionProps) {
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
