import { useMemo } from "react";
import type { JsonObject } from "@/api/types";
import { phaseField } from "@/catalog/scheduleSchema";
import { isGroup, type PhasePath, phaseAt, phaseSpecPath } from "@/document/phases";
import { problemsAt } from "@/document/problems";
import { teachingPorts } from "@/document/teaching";
import { joinPath } from "@/lib/paths";
import { removePhase } from "@/state/commands/phases";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { PortMark } from "@/ui/PortMark";
import { Empty } from "@/ui/States";
import { FieldProblems } from "./form/FieldProblems";
import { useForm } from "./form/FormContext";
import { useValueForm } from "./forms";
import { InspectorBody, InspectorForm, InspectorHeader, RemoveButton } from "./InspectorHeader";

export function PhaseInspector({ at }: { at: PhasePath }) {
  const { catalog, store } = useOpenLoop();
  const phase = useDocument((state) => phaseAt(state.document, at));
  const form = useValueForm(phaseSpecPath(at));
  if (!phase) return <Empty title="This phase no longer exists" />;
  const hasPhases = isGroup(phase);
  const remove = () => store.dispatch(removePhase, { at });
  return (
    <>
      <InspectorHeader
        title={typeof phase.name === "string" ? phase.name : hasPhases ? "Group" : "Phase"}
        subtitle={hasPhases ? "Phases that repeat" : "Phase"}
        actions={<RemoveButton label="Remove" onRemove={remove} />}
      />
      <InspectorBody>
        <InspectorForm
          form={form}
          field={phaseField(catalog, hasPhases)}
          value={phase}
          without={["phases", "learn"]}
        >
          {hasPhases ? null : <LearnPorts phase={phase} />}
        </InspectorForm>
      </InspectorBody>
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
            <PortMark type={type} />
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
