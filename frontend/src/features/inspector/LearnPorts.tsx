import { useMemo } from "react";
import type { JsonObject } from "@/api/types";
import { useDocument, useOpenLoop } from "@/document/context";
import { problemsAt } from "@/document/problems";
import { teachingPorts } from "@/document/teaching";
import { joinPath } from "@/lib/paths";
import { PortMark } from "@/ui/PortMark";
import { FieldProblems } from "./form/FieldProblems";
import { useForm } from "./form/FormContext";

/** Which teaching ports are live in a phase: those that have a connection can be chosen. */
export function LearnPorts({ phase }: { phase: JsonObject }) {
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
