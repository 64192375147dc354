import { readSchema } from "@/catalog/schema";
import { useDocument, useOpenLoop } from "@/document/context";
import { FormContext } from "./form/FormContext";
import { ObjectFields } from "./form/ObjectFields";
import { useValueForm } from "./useValueForm";

/** Parts of a loop that have places of their own. */
const ELSEWHERE = [
  ...["coloop", "name", "mode", "nodes", "edges"],
  ...["schedule", "hardware", "run", "layout"],
];

/** Description and the like, where the catalog has a schema of the loop itself. */
export function LoopFacts() {
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
