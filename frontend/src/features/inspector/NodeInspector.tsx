import { Copy, FileUp, Plus, SquareFunction, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Catalog, ModeInfo } from "@/api/types";
import { ofOtherModes } from "@/catalog/modes";
import { readSchema } from "@/catalog/schema";
import { canConnect, inputPort } from "@/document/canConnect";
import { DATA_SUFFIXES } from "@/document/dataFiles";
import { rowsKind } from "@/document/datasets";
import { edgeKeys, portRef, portText } from "@/document/edges";
import { nameProblem } from "@/document/names";
import { isNatural, naturalness } from "@/document/naturalness";
import type { Edge, LoopDocument } from "@/document/types";
import { edgeText } from "@/graph/edgeKinds";
import { formatPlural } from "@/lib/format";
import { showKeys } from "@/state/actions";
import { addFile } from "@/state/addData";
import { connect } from "@/state/commands/edges";
import { removeItems, renameNode } from "@/state/commands/nodes";
import { explain } from "@/state/dialogs";
import { useDocument, useMode, useNodeColor, useOpenLoop } from "@/state/document/context";
import { select } from "@/state/selection";
import { useClipboard } from "@/state/useClipboard";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Combobox } from "@/ui/Combobox";
import { IconButton } from "@/ui/IconButton";
import { KindIcon } from "@/ui/KindIcon";
import { RichText } from "@/ui/RichText";
import { BatchBreakdowns } from "./BatchBreakdowns";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { useNodeForm } from "./forms";
import { InspectorHeader, RemoveButton } from "./InspectorHeader";
import { ModelSize } from "./ModelSize";
import { type OtherModes, useOtherModes } from "./useOtherModes";

export function NodeInspector({ id }: { id: string }) {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[id]);
  const others = useOtherModes(id);
  const form = useNodeForm(id, others.hidden);
  const color = useNodeColor(id);
  const { duplicate } = useClipboard();
  if (!data) return null;
  const kind = catalog.kinds[data.kind];
  const field = kind ? readSchema(kind.schema) : null;
  const remove = () =>
    store.dispatch(removeItems, { nodes: [id], edges: [] }, { label: `Delete ${id}` });

  return (
    <>
      <InspectorHeader
        icon={
          <span className="loop-node-icon" style={{ "--node-color": color } as React.CSSProperties}>
            <KindIcon name={kind?.icon} />
          </span>
        }
        title={<NodeName id={id} />}
        subtitle={kind?.title ?? data.kind}
        help={kind?.help}
        actions={
          <>
            <IconButton
              label="Duplicate"
              keys={showKeys("mod+d")}
              size="small"
              onClick={() => duplicate([id])}
              icon={<Copy size={14} />}
            />
            <RemoveButton label="Delete" keys={showKeys("backspace")} onRemove={remove} />
          </>
        }
      />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 pt-1 pb-2">
        {data.algorithm ? <LearnsButton node={id} /> : null}
        {data.kind === rowsKind(catalog)?.kind && !form.lockReason ? <OwnRows node={id} /> : null}
        {kind && !kind.runnable ? (
          <Badge tone="info" className="mb-1">
            Can be drawn and checked; not yet runnable
          </Badge>
        ) : null}
        {form.lockReason ? <p className="pb-2 text-muted text-xs">{form.lockReason}</p> : null}
        <FieldProblems problems={form.diagnostics.filter((problem) => !problem.field)} />
        <ModelSize node={id} />
        <BatchBreakdowns node={id} />
        <FormContext value={form}>
          {field?.shape === "object" ? (
            <FormFields field={field} value={data} without={["kind"]} />
          ) : (
            <p className="text-error text-sm">
              This server does not know the kind “{data.kind}”. The node is kept as it is.
            </p>
          )}
        </FormContext>
        <OtherModesNote {...others} />
        <Connections node={id} />
      </div>
    </>
  );
}

function OtherModesNote({ isAny, set, isShown, show }: OtherModes) {
  const mode = useMode();
  if (!isAny) return null;
  const names = set.map((path) => `\`${path}\``).join(", ");
  return (
    <div className="flex items-start gap-2 border-line border-t py-1.5 text-muted text-xs">
      <p className="min-w-0 flex-1 py-1">
        {isShown ? (
          "Settings of all modes are shown."
        ) : set.length === 0 ? (
          "Settings of other modes are left out."
        ) : (
          <RichText
            text={`${formatPlural(set.length, "setting")} of other modes ${set.length === 1 ? "is" : "are"} set: ${names}.`}
          />
        )}
      </p>
      <Button size="small" look="quiet" onClick={() => show(!isShown)}>
        {isShown ? `Only ${mode.title.toLowerCase()}` : "Show all"}
      </Button>
    </div>
  );
}

function NodeName({ id }: { id: string }) {
  const { catalog, store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [name, setName] = useState(id);
  const taken = () => new Set(Object.keys(store.getState().document.nodes));
  const problem = name === id ? null : nameProblem(name, taken(), id);

  useEffect(() => setName(id), [id]);

  const take = () => {
    if (name === id) return;
    if (problem) {
      setName(id);
      return;
    }
    store.dispatch(renameNode, { catalog, from: id, to: name });
    select({ nodes: [name] });
  };
  return (
    <>
      <input
        aria-label="Name of the node"
        aria-invalid={problem !== null || undefined}
        className="-mx-1 w-full truncate rounded-1 border border-transparent bg-transparent px-1 font-semibold text-sm hover:border-line focus:border-focus"
        value={name}
        title={id}
        disabled={isReadonly}
        spellCheck={false}
        onChange={(event) => setName(event.target.value)}
        onBlur={take}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.currentTarget.blur();
          if (event.key === "Escape") setName(id);
        }}
      />
      {problem ? <p className="text-error text-xs">{problem}</p> : null}
    </>
  );
}

/** Rows of one's own: a file of this computer, or what is pasted while the dataset is selected. */
function OwnRows({ node }: { node: string }) {
  const { catalog, store } = useOpenLoop();
  const mode = useMode();
  const input = useRef<HTMLInputElement>(null);
  const open = async (file: File | undefined) => {
    if (file) await addFile({ catalog, store, mode }, file, { node });
  };
  return (
    <div className="flex items-center gap-2 pb-1">
      <input
        ref={input}
        type="file"
        accept={DATA_SUFFIXES}
        hidden
        aria-label="Data file"
        onChange={(event) => {
          void open(event.target.files?.[0]);
          event.target.value = "";
        }}
      />
      <Button size="small" icon={<FileUp size={13} />} onClick={() => input.current?.click()}>
        Open a file…
      </Button>
      <span className="text-faint text-xs">or drop one here, or paste rows</span>
    </div>
  );
}

function LearnsButton({ node }: { node: string }) {
  return (
    <Button
      size="small"
      look="quiet"
      className="-ml-2 mb-1 text-accent-text"
      icon={<SquareFunction size={13} />}
      onClick={() => explain({ node })}
    >
      Formulas and curves
    </Button>
  );
}

function Connections({ node }: { node: string }) {
  const { catalog, store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const isReadonly = useDocument((state) => state.isReadonly);
  const keys = edgeKeys(document.edges);
  const own = document.edges
    .map((edge, index) => ({ edge, key: keys[index] ?? "" }))
    .filter(({ edge }) => portRef(edge.from).node === node || portRef(edge.to).node === node);

  return (
    <section aria-label="Connections" className="mt-2 border-line border-t pt-2">
      <h2 className="py-1 font-medium text-xs">Connections</h2>
      {own.length === 0 ? <p className="text-muted text-xs">Not connected yet.</p> : null}
      <ul>
        {own.map(({ edge, key }) => (
          <li key={key} className="group flex items-center gap-1">
            <button
              type="button"
              className="min-w-0 flex-1 truncate rounded-1 px-1 py-0.5 text-left font-mono text-xs hover:bg-hover"
              title={`${edge.from} → ${edge.to}`}
              onClick={() => select({ edges: [key] })}
            >
              {edge.from} <span className="text-faint">→</span> {edge.to}
              {edgeText(catalog, edge) ? (
                <span className="text-faint"> {edgeText(catalog, edge)}</span>
              ) : null}
            </button>
            {isReadonly ? null : (
              <IconButton
                label={`Disconnect ${edge.from} from ${edge.to}`}
                size="small"
                className="size-5 opacity-0 focus-visible:opacity-100 group-hover:opacity-100"
                onClick={() =>
                  store.dispatch(removeItems, { nodes: [], edges: [key] }, { label: "Disconnect" })
                }
                icon={<X size={12} />}
              />
            )}
          </li>
        ))}
      </ul>
      {isReadonly ? null : <NaturalEdges node={node} />}
      {isReadonly ? null : <ConnectTo key={node} node={node} />}
    </section>
  );
}

const MOST_NATURAL = 2;

/** The connections that a node most likely lacks, with what they do; one press makes them. */
function NaturalEdges({ node }: { node: string }) {
  const { catalog, store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const mode = useMode();
  const offered = useMemo(
    () =>
      possibleEdges(catalog, document, node)
        .filter(({ to }) => !isOfOtherModes(mode, document, to))
        .map((edge) => ({ edge, score: naturalness(catalog, document, edge) }))
        .filter(({ score }) => isNatural(score))
        .toSorted((a, b) => b.score - a.score)
        .slice(0, MOST_NATURAL),
    [catalog, document, node, mode],
  );
  if (offered.length === 0) return null;
  return (
    <ul aria-label="Suggested connections" className="mt-1 flex flex-col gap-1">
      {offered.map(({ edge }) => (
        <li key={edgeName(edge)}>
          <button
            type="button"
            className="w-full rounded-2 border border-line border-dashed px-2 py-1 text-left text-xs hover:border-accent hover:bg-hover"
            onClick={() => store.dispatch(connect, { edge })}
          >
            <span className="flex items-center gap-1 font-mono">
              <Plus size={12} aria-hidden="true" /> {edgeName(edge)}
            </span>
            <span className="text-muted">{effectOf(catalog, document, edge)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** What a connection does, in words: what the input at its end is for. */
function effectOf(catalog: Catalog, document: LoopDocument, { to }: Edge): string {
  return inputPort(catalog, document, portRef(to))?.help ?? "";
}

export function ConnectTo({ node }: { node: string }) {
  const { catalog, store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const list = useRef<HTMLButtonElement>(null);
  const [wish, setWish] = useState("");
  const [isAsked, setAsked] = useState(false);
  const mode = useMode();
  const options = useMemo(() => {
    const edges = isAsked ? possibleEdges(catalog, document, node) : [];
    const isOther = ({ to }: Edge) => isOfOtherModes(mode, document, to);
    return edges
      .map((edge) => ({
        edge,
        isOther: isOther(edge),
        score: naturalness(catalog, document, edge),
      }))
      .toSorted((a, b) => Number(a.isOther) - Number(b.isOther) || b.score - a.score);
  }, [catalog, document, node, isAsked, mode]);
  const chosen = options.find(({ edge }) => edgeName(edge) === wish)?.edge;

  const add = () => {
    if (!chosen) return;
    store.dispatch(connect, { edge: chosen });
    setWish("");
    list.current?.focus();
  };
  return (
    <div className="mt-1 flex items-center gap-1">
      <span className="min-w-0 flex-1">
        <Combobox
          ref={list}
          label="Connect to"
          value={chosen ? wish : ""}
          options={[
            {
              value: "",
              label: isAsked && options.length === 0 ? "Nothing else fits" : "Connect to…",
              isUnset: true,
            },
            ...options.map(({ edge, isOther }) => ({
              value: edgeName(edge),
              label: edgeName(edge),
              help: isOther ? "Belongs to other modes." : effectOf(catalog, document, edge),
            })),
          ]}
          onOpen={() => setAsked(true)}
          onChange={setWish}
        />
      </span>
      <Button size="small" disabled={!chosen} onClick={add}>
        Connect
      </Button>
    </div>
  );
}

function edgeName(edge: Edge): string {
  return `${edge.from} → ${edge.to}`;
}

function isOfOtherModes(mode: ModeInfo, document: LoopDocument, to: string): boolean {
  const { node, port } = portRef(to);
  return ofOtherModes(mode, document.nodes[node]?.kind).ports.includes(port);
}

function possibleEdges(catalog: Catalog, document: LoopDocument, node: string): Edge[] {
  const portsOf = (id: string, side: "inputs" | "outputs") =>
    (catalog.kinds[document.nodes[id]?.kind ?? ""]?.[side] ?? []).map((port) => ({
      node: id,
      port: port.name,
    }));
  const others = Object.keys(document.nodes).filter((id) => id !== node);
  const pairs = [
    ...portsOf(node, "outputs").flatMap((from) =>
      others.flatMap((id) => portsOf(id, "inputs").map((to) => ({ from, to }))),
    ),
    ...portsOf(node, "inputs").flatMap((to) =>
      others.flatMap((id) => portsOf(id, "outputs").map((from) => ({ from, to }))),
    ),
    // What a node gives may teach the node itself.
    ...portsOf(node, "outputs").flatMap((from) =>
      portsOf(node, "inputs")
        .filter((to) => inputPort(catalog, document, to)?.teaching)
        .map((to) => ({ from, to })),
    ),
  ];
  return pairs
    .filter(({ from, to }) => canConnect(catalog, document, from, to).ok)
    .map(({ from, to }) => ({ from: portText(from), to: portText(to) }));
}
