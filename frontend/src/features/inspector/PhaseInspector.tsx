import { Trash2 } from "lucide-react";
import { useMemo } from "react";
import type { JsonObject } from "@/api/types";
import { phaseField } from "@/catalog/scheduleSchema";
import { isGroup, type PhasePath, phaseAt, phaseSpecPath } from "@/document/phases";
import { problemsAt } from "@/document/problems";
import { teachingPorts } from "@/document/teaching";
import { joinPath } from "@/lib/paths";
import { removePhase } from "@/state/commands/phases";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { clearSelection } from "@/state/selection";
import { IconButton } from "@/ui/IconButton";
import { PortMark } from "@/ui/PortMark";
import { Empty } from "@/ui/States";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext, useForm } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { InspectorHeader } from "./InspectorHeader";
import { useValueForm } from "./useValueForm";

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
                store.dispatch(removePhase, { at });
                clearSelection();
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

function LearnPorts({ phase }: { phase: JsonObject }) {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const isReadonly = useDocument((state) => state.isReadonly);
  const form = useForm();
  const ports = useMemo(() => teachingPorts(catalog, document), [catalog, document]);
  const learn = Array.isArray(phase.learn) ? phase.learn.map(String) : [];
  const other = learn.filter((name) => !ports.some((port) => port.name === name));
  const path = joinPath([...form.base, "learn"]);

  const toggle = (name: string, isOn: boolean) => {
    form.write(["learn"], isOn ? [...learn, name] : learn.filter((one) => one !== name));
  };
  return (
    <fieldset data-field={path} className="py-1" disabled={isReadonly}>
      <legend className="pb-1 font-medium text-xs">Learns from</legend>
      {ports.length === 0 ? (
        <p className="text-muted text-xs">No teaching port has a connection yet.</p>
      ) : null}
      {ports.map((port) => {
        const type = catalog.port_types[port.type];
        const isWhole = learn.includes(port.node);
        return (
          <label key={port.name} className="flex h-7 items-center gap-2 text-xs">
            <input
              type="checkbox"
              className="accent-(--accent)"
              checked={isWhole || learn.includes(port.name)}
              disabled={isWhole}
              onChange={(event) => toggle(port.name, event.target.checked)}
            />
            <PortMark shape={type?.shape ?? ""} color={type?.color ?? ""} isHandle={false} />
            <span className="truncate font-mono">{port.name}</span>
          </label>
        );
      })}
      {other.map((name) => (
        <label key={name} className="flex h-7 items-center gap-2 text-xs">
          <input
            type="checkbox"
            className="accent-(--accent)"
            checked
            onChange={() => toggle(name, false)}
          />
          <span className="truncate font-mono">{name}</span>
        </label>
      ))}
      <FieldProblems problems={problemsAt(form.diagnostics, path, false)} />
    </fieldset>
  );
}
