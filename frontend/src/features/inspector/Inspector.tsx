import { type RefObject, useEffect, useMemo, useRef } from "react";
import type { JsonObject } from "@/api/types";
import { entryField, phaseField } from "@/catalog/scheduleSchema";
import { readSchema, sectionSchema } from "@/catalog/schema";
import { outputPort, teachingPorts } from "@/document/canConnect";
import { edgeIndex, portRef } from "@/document/edges";
import { isGroup, type PhasePath, phaseAt, phaseSpecPath, schedule } from "@/document/phases";
import { listedIndex } from "@/document/place";
import { problemsAt } from "@/document/problems";
import { formatName } from "@/lib/format";
import { isObject, joinPath } from "@/lib/paths";
import { setValue } from "@/state/commands/fields";
import { removeItems } from "@/state/commands/nodes";
import { removePhase } from "@/state/commands/phases";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { PortMark } from "@/ui/PortMark";
import { RichText } from "@/ui/RichText";
import { Empty } from "@/ui/States";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext, useForm } from "./form/FormContext";
import { ObjectFields } from "./form/ObjectFields";
import { useEdgeForm, useProblems, useValueForm } from "./forms";
import { InspectorForm, InspectorPage, RemoveButton } from "./InspectorHeader";
import { ManyInspector } from "./ManyInspector";
import { NodeInspector } from "./NodeInspector";

export function Inspector() {
  const panel = useRef<HTMLDivElement>(null);
  useFieldFocus(panel);
  useEscape(panel);
  return (
    <div ref={panel} className="flex h-full min-h-0 flex-col bg-surface">
      <Chosen />
    </div>
  );
}

function Chosen() {
  const { nodes, edges, phase, entry } = useSelection();
  const isKnown = useDocument(
    (state) => nodes.length === 1 && (nodes[0] ?? "") in state.document.nodes,
  );
  const [node] = nodes;
  const [edge] = edges;
  if (phase) return <PhaseInspector key={phase.join(".")} at={phase} />;
  if (entry) return <EntryInspector key={`${entry.list}.${entry.index}`} {...entry} />;
  if (nodes.length + edges.length > 1) return <ManyInspector />;
  if (node !== undefined && isKnown) return <NodeInspector key={node} id={node} />;
  if (edge !== undefined) return <EdgeInspector key={edge} edgeKey={edge} />;
  return <LoopInspector />;
}

/** Escape leads from a control of the settings back to the page, where single keys are commands again. */
function useEscape(panel: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = panel;
    const leave = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !(event.target instanceof HTMLElement)) return;
      event.target.blur();
      event.preventDefault();
    };
    current?.addEventListener("keydown", leave);
    return () => current?.removeEventListener("keydown", leave);
  }, [panel]);
}

const FLASH = "field-flash";

/** Brings the field of a problem into view: the deepest one that is shown. */
function useFieldFocus(panel: RefObject<HTMLElement | null>): void {
  const focus = useSelection((state) => state.focus);
  useEffect(() => {
    if (!focus?.field) return;
    const timer = setTimeout(() => {
      const found = deepest(panel.current, focus.field ?? "");
      if (!found) return;
      found.scrollIntoView({ block: "center" });
      found
        .querySelector<HTMLElement>(
          "input, select, textarea, [role=switch], [contenteditable=true]",
        )
        ?.focus({ preventScroll: true });
      found.classList.remove(FLASH);
      requestAnimationFrame(() => found.classList.add(FLASH));
    }, 120);
    return () => clearTimeout(timer);
  }, [focus, panel]);
}

function deepest(panel: HTMLElement | null, field: string): HTMLElement | null {
  const parts = field.split(".");
  for (let length = parts.length; length > 0; length -= 1) {
    const path = parts.slice(0, length).join(".");
    const found = panel?.querySelector<HTMLElement>(`[data-field="${CSS.escape(path)}"]`);
    if (found) return found;
  }
  return null;
}

function EntryInspector({ list, index }: { list: string; index: number }) {
  const { catalog, store } = useOpenLoop();
  const entry = useDocument((state) => {
    const entries = schedule(state.document)[list];
    return Array.isArray(entries) ? entries[index] : undefined;
  });
  const path = ["schedule", list, index];
  const form = useValueForm(path);
  if (!isObject(entry)) return <Empty title="This entry no longer exists" />;
  const field = entryField(catalog, list);
  const remove = () => store.dispatch(setValue, { path, value: undefined });
  return (
    <InspectorPage
      title={`${formatName(list)} ${index + 1}`}
      subtitle={field?.help ?? ""}
      actions={<RemoveButton label="Remove" onRemove={remove} />}
    >
      <InspectorForm form={form} field={field} value={entry} />
    </InspectorPage>
  );
}

const SCHEDULE_LISTS = ["phases", "triggers", "anneal"];

export function LoopInspector() {
  const name = useDocument((state) => state.document.name);
  const problems = useProblems().loop;
  return (
    <InspectorPage title={name} subtitle="Loop">
      <FieldProblems problems={problems.filter((problem) => !problem.field)} />
      <LoopFacts />
      <LoopSection title="Schedule" part="schedule" without={SCHEDULE_LISTS} />
      <LoopSection title="Hardware" part="hardware" />
      <LoopSection title="Run" part="run" />
    </InspectorPage>
  );
}

const ELSEWHERE = [
  ...["coloop", "name", "mode", "nodes", "edges"],
  ...["schedule", "hardware", "run", "layout"],
];

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
      <InspectorForm
        form={form}
        field={field}
        value={isObject(value) ? value : NOTHING}
        without={without}
      />
    </section>
  );
}

export function EdgeInspector({ edgeKey }: { edgeKey: string }) {
  const { catalog, store } = useOpenLoop();
  const index = useDocument((state) =>
    listedIndex(state.document, edgeIndex(state.document, edgeKey)),
  );
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, edgeKey)]);
  const type = useDocument((state) =>
    edge ? outputPort(catalog, state.document, portRef(edge.from))?.type : undefined,
  );
  const form = useEdgeForm(edgeKey, index, edge?.id);
  if (!edge) return null;
  const schema = catalog.schema.edge;
  const portType = catalog.port_types[type ?? ""];
  const remove = () =>
    store.dispatch(removeItems, { nodes: [], edges: [edgeKey] }, { label: "Disconnect" });
  return (
    <InspectorPage
      icon={<PortMark type={portType} size={16} />}
      title="Connection"
      subtitle={type ? `carries ${type}` : ""}
      actions={<RemoveButton label="Delete" keys="⌫" onRemove={remove} />}
    >
      <dl className="mb-2 grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 text-xs">
        <dt className="text-muted">From</dt>
        <dd className="truncate font-mono">{edge.from}</dd>
        <dt className="text-muted">To</dt>
        <dd className="truncate font-mono">{edge.to}</dd>
      </dl>
      {portType?.help ? (
        <p className="pb-1 text-muted text-xs">
          <RichText text={portType.help} />
        </p>
      ) : null}
      <InspectorForm
        form={form}
        field={schema ? readSchema(schema) : null}
        value={edge}
        without={["from", "to", "source", "target"]}
      />
    </InspectorPage>
  );
}

export function PhaseInspector({ at }: { at: PhasePath }) {
  const { catalog, store } = useOpenLoop();
  const phase = useDocument((state) => phaseAt(state.document, at));
  const form = useValueForm(phaseSpecPath(at));
  if (!phase) return <Empty title="This phase no longer exists" />;
  const hasPhases = isGroup(phase);
  const remove = () => store.dispatch(removePhase, { at });
  return (
    <InspectorPage
      title={typeof phase.name === "string" ? phase.name : hasPhases ? "Group" : "Phase"}
      subtitle={hasPhases ? "Phases that repeat" : "Phase"}
      actions={<RemoveButton label="Remove" onRemove={remove} />}
    >
      <InspectorForm
        form={form}
        field={phaseField(catalog, hasPhases)}
        value={phase}
        without={["phases", "learn"]}
      >
        {hasPhases ? null : <LearnPorts phase={phase} />}
      </InspectorForm>
    </InspectorPage>
  );
}

function LearnPorts({ phase }: { phase: JsonObject }) {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const isReadonly = useDocument((state) => state.isReadonly);
  const form = useForm();
  const ports = useMemo(() => teachingPorts(catalog, document), [catalog, document]);
  const learn = Array.isArray(phase.learn) ? phase.learn.map(String) : [];
  const other = learn
    .filter((name) => !ports.some((port) => port.name === name))
    .map((name) => ({ name, node: undefined, type: undefined }));
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
      {[...ports, ...other].map(({ name, node, type }) => {
        const isWhole = node !== undefined && learn.includes(node);
        return (
          <label key={name} className="flex h-7 items-center gap-2 text-xs">
            <input
              type="checkbox"
              className="accent-(--accent)"
              checked={isWhole || learn.includes(name)}
              disabled={isWhole}
              onChange={(event) => toggle(name, event.target.checked)}
            />
            {type === undefined ? null : <PortMark type={catalog.port_types[type]} />}
            <span className="truncate font-mono">{name}</span>
          </label>
        );
      })}
      <FieldProblems problems={problemsAt(form.diagnostics, path, false)} />
    </fieldset>
  );
}
