import { Trash2 } from "lucide-react";
import { entryField } from "@/catalog/scheduleSchema";
import { schedule } from "@/document/phases";
import { problemsAt } from "@/document/problems";
import { formatName } from "@/lib/format";
import { isObject, joinPath } from "@/lib/paths";
import { setValue } from "@/state/commands/fields";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { IconButton } from "@/ui/IconButton";
import { Empty } from "@/ui/States";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { InspectorHeader } from "./InspectorHeader";
import { useValueForm } from "./useValueForm";

/** One entry of a list of the schedule: a trigger, an annealing. */
export function EntryInspector({ list, index }: { list: string; index: number }) {
  const { catalog, store } = useOpenLoop();
  const entry = useDocument((state) => {
    const entries = schedule(state.document)[list];
    return Array.isArray(entries) ? entries[index] : undefined;
  });
  const isReadonly = useDocument((state) => state.isReadonly);
  const form = useValueForm(["schedule", list, index]);
  if (!isObject(entry)) return <Empty title="This entry no longer exists" />;
  const field = entryField(catalog, list);
  return (
    <>
      <InspectorHeader
        title={<h2 className="font-semibold text-sm">{`${formatName(list)} ${index + 1}`}</h2>}
        subtitle={field?.help ?? ""}
        actions={
          isReadonly ? null : (
            <IconButton
              label="Remove"
              size="small"
              onClick={() => {
                store
                  .getState()
                  .dispatch(setValue, { path: ["schedule", list, index], value: undefined });
                useSelection.getState().clear();
              }}
            >
              <Trash2 size={14} />
            </IconButton>
          )
        }
      />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 py-2">
        <FieldProblems problems={problemsAt(form.diagnostics, joinPath(form.base), true)} />
        <FormContext value={form}>
          {field?.shape === "object" ? <FormFields field={field} value={entry} /> : null}
        </FormContext>
      </div>
    </>
  );
}
