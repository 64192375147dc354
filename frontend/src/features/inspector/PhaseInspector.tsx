import { Trash2 } from "lucide-react";
import { phaseField } from "@/catalog/scheduleSchema";
import { removePhase } from "@/document/commands/removePhase";
import { useDocument, useOpenLoop } from "@/document/context";
import { isGroup, type PhasePath, phaseAt, phaseSpecPath } from "@/document/phases";
import { problemsAt } from "@/document/problems";
import { joinPath } from "@/lib/paths";
import { useSelection } from "@/session/selection";
import { IconButton } from "@/ui/IconButton";
import { Empty } from "@/ui/States";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { InspectorHeader } from "./InspectorHeader";
import { LearnPorts } from "./LearnPorts";
import { useValueForm } from "./useValueForm";

/** The settings of a phase, or of a group of phases. */
export function PhaseInspector({ at }: { at: PhasePath }) {
  const { catalog, store } = useOpenLoop();
  const phase = useDocument((state) => phaseAt(state.document, at));
  const isReadonly = useDocument((state) => state.isReadonly);
  const form = useValueForm(phaseSpecPath(at));
  if (!phase) return <Empty title="This phase no longer exists" />;
  const hasPhases = isGroup(phase);
  const field = phaseField(catalog, hasPhases);
  const name = typeof phase.name === "string" ? phase.name : hasPhases ? "Group" : "Phase";

  return (
    <>
      <InspectorHeader
        title={<h2 className="truncate font-semibold text-sm">{name}</h2>}
        subtitle={hasPhases ? "Phases that repeat" : "Phase"}
        actions={
          isReadonly ? null : (
            <IconButton
              label="Remove"
              size="small"
              onClick={() => {
                store.getState().dispatch(removePhase, { at });
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
          {hasPhases ? null : <LearnPorts phase={phase} />}
          {field?.shape === "object" ? (
            <FormFields field={field} value={phase} without={["phases", "learn"]} />
          ) : null}
        </FormContext>
      </div>
    </>
  );
}
