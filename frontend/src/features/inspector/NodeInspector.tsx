import { Copy, SquareFunction, Trash2 } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { readSchema } from "@/catalog/schema";
import { nameProblem } from "@/document/names";
import { formatPlural } from "@/lib/format";
import { joinPath } from "@/lib/paths";
import { showKeys } from "@/state/actions";
import { setField } from "@/state/commands/fields";
import { removeItems, renameNode } from "@/state/commands/nodes";
import { useExplaining } from "@/state/dialogs";
import { useDocument, useMode, useNodeColor, useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { useSelection } from "@/state/selection";
import { useClipboard } from "@/state/useClipboard";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { KindIcon } from "@/ui/KindIcon";
import { RichText } from "@/ui/RichText";
import { BatchBreakdowns } from "./BatchBreakdowns";
import { Connections } from "./Connections";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext, type FormSettings } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { InspectorHeader } from "./InspectorHeader";
import { noteEdit } from "./noteEdit";
import { useLocks } from "./useLocks";
import { type OtherModes, useOtherModes } from "./useOtherModes";
import { useProblems } from "./useProblems";

/** Everything about one node: name, fields from its schema, connections. */
export function NodeInspector({ id }: { id: string }) {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[id]);
  const isReadonly = useDocument((state) => state.isReadonly);
  const others = useOtherModes(id);
  const form = useNodeForm(id, others.hidden);
  const color = useNodeColor(id);
  const { duplicate } = useClipboard();
  if (!data) return null;
  const kind = catalog.kinds[data.kind];
  const field = kind ? readSchema(kind.schema) : null;

  return (
    <>
      <InspectorHeader
        icon={
          <span
            className="loop-node-icon"
            style={
              {
                "--node-color": color,
              } as React.CSSProperties
            }
          >
            <KindIcon name={kind?.icon} />
          </span>
        }
        title={<NodeName id={id} />}
        subtitle={kind?.title ?? data.kind}
        help={kind?.help}
        actions={
          isReadonly ? null : (
            <>
              <IconButton
                label="Duplicate"
                keys={showKeys("mod+d")}
                size="small"
                onClick={() => duplicate([id])}
              >
                <Copy size={14} />
              </IconButton>
              <IconButton
                label="Delete"
                keys={showKeys("backspace")}
                size="small"
                onClick={() => {
                  store
                    .getState()
                    .dispatch(removeItems, { nodes: [id], edges: [] }, { label: `Delete ${id}` });
                  useSelection.getState().clear();
                }}
              >
                <Trash2 size={14} />
              </IconButton>
            </>
          )
        }
      />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 pt-1 pb-2">
        {data.algorithm ? <LearnsButton node={id} /> : null}
        {kind && !kind.runnable ? (
          <Badge tone="info" className="mb-1">
            Can be drawn and checked; not yet runnable
          </Badge>
        ) : null}
        {form.lockReason ? <p className="pb-2 text-muted text-xs">{form.lockReason}</p> : null}
        <FieldProblems problems={form.diagnostics.filter((problem) => !problem.field)} />
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

/** Says what the form leaves to other modes, above all what of it is set, and shows it. */
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

const NONE: readonly never[] = [];

/** The form of one node: writes its fields, and in a run collects edits of hot ones. */
function useNodeForm(node: string, hidden: FormSettings["hidden"]): FormSettings {
  const { catalog, store, runId } = useOpenLoop();
  const level = usePreferences((state) => state.level);
  const diagnostics = useProblems().byNode.get(node) ?? NONE;
  const locks = useLocks();
  return useMemo(
    () => ({
      level,
      levels: catalog.levels,
      base: [],
      scope: ["nodes", node],
      diagnostics,
      hidden,
      keepsWrong: runId === null,
      ...locks,
      write: (path, value, keep = 0) => {
        const full = joinPath(["nodes", node, ...path]);
        store
          .getState()
          .dispatch(
            setField,
            { node, path, value, keep },
            { group: full, isHotEdit: runId !== null },
          );
        if (runId) noteEdit({ catalog, store }, full, value);
      },
    }),
    [catalog, store, runId, level, diagnostics, hidden, locks, node],
  );
}

/** The node's name; what mentions it follows. */
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
    store.getState().dispatch(renameNode, { catalog, from: id, to: name });
    useSelection.getState().select({ nodes: [name] });
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

/** Opens what a node computes, in formulas with its own settings. */
function LearnsButton({ node }: { node: string }) {
  const explain = useExplaining((state) => state.explain);
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
