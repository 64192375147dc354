import {
  AlignCenterHorizontal,
  AlignCenterVertical,
  AlignEndHorizontal,
  AlignEndVertical,
  AlignHorizontalDistributeCenter,
  AlignStartHorizontal,
  AlignStartVertical,
  AlignVerticalDistributeCenter,
  Blocks,
  Copy,
  type LucideIcon,
  Network,
  Trash2,
} from "lucide-react";
import { useMemo } from "react";
import type { Json } from "@/api/types";
import { readSchema } from "@/catalog/schema";
import { commonOf } from "@/document/sharedValue";
import { formatPlural } from "@/lib/format";
import { isObject } from "@/lib/paths";
import { removeItems } from "@/state/commands/nodes";
import { showDialog } from "@/state/dialogs";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { clearSelection, useSelection } from "@/state/selection";
import { ALIGNMENTS, DISTRIBUTIONS, useArrange } from "@/state/useArrange";
import { useClipboard } from "@/state/useClipboard";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { FormContext } from "./form/FormContext";
import { FormLabels } from "./form/Labels";
import { ObjectFields } from "./form/ObjectFields";
import { useNodesForm } from "./forms";
import { InspectorHeader } from "./InspectorHeader";
import { useOtherModes } from "./useOtherModes";

export function ManyInspector() {
  const { catalog, store } = useOpenLoop();
  const nodes = useSelection((state) => state.nodes);
  const edges = useSelection((state) => state.edges);
  const isReadonly = useDocument((state) => state.isReadonly);
  const kind = useDocument((state) => {
    const kinds = new Set(nodes.map((id) => state.document.nodes[id]?.kind));
    const [only] = kinds;
    return kinds.size === 1 && only !== undefined ? only : null;
  });
  const { arrange } = useArrange();
  const { copy, duplicate } = useClipboard();
  const remove = () => {
    store.dispatch(removeItems, { nodes, edges });
    clearSelection();
  };
  const button = (label: string, Icon: LucideIcon, run: () => void, look?: "danger") => (
    <Button size="small" look={look ?? "plain"} icon={<Icon size={14} />} onClick={run}>
      {label}
    </Button>
  );
  const words = [
    nodes.length > 0 ? formatPlural(nodes.length, "node") : null,
    edges.length > 0 ? formatPlural(edges.length, "connection") : null,
  ].filter(Boolean);
  return (
    <>
      <InspectorHeader
        title="Selection"
        subtitle={
          kind ? `${words.join(", ")} · ${catalog.kinds[kind]?.title ?? kind}` : words.join(", ")
        }
        hasLevels={kind !== null && edges.length === 0}
      />
      <div className="flex flex-wrap items-start gap-2 px-4 py-3">
        {button("Copy", Copy, () => void copy(nodes))}
        {isReadonly ? null : (
          <>
            {button("Duplicate", Copy, () => duplicate(nodes))}
            {button("Arrange", Network, arrange)}
            {nodes.length > 0
              ? button("Save as block", Blocks, () => showDialog("saveBlock"))
              : null}
            {button("Delete", Trash2, remove, "danger")}
          </>
        )}
      </div>
      {isReadonly ? null : <AlignButtons nodes={nodes.length} />}
      <div className="min-h-0 flex-1 overflow-y-auto border-line border-t px-4 py-2">
        {kind !== null && edges.length === 0 ? (
          <ManyFields key={nodes.join(" ")} kind={kind} nodes={nodes} />
        ) : (
          <p className="text-muted text-xs">
            Select nodes of one kind to change their settings together.
          </p>
        )}
      </div>
    </>
  );
}

const ICONS: Record<string, LucideIcon> = {
  left: AlignStartVertical,
  center: AlignCenterVertical,
  right: AlignEndVertical,
  top: AlignStartHorizontal,
  middle: AlignCenterHorizontal,
  bottom: AlignEndHorizontal,
  across: AlignHorizontalDistributeCenter,
  down: AlignVerticalDistributeCenter,
};

function AlignButtons({ nodes }: { nodes: number }) {
  const { align, distribute } = useArrange();
  if (nodes < 2) return null;
  const button = (id: string, label: string, run: () => void) => {
    const Icon = ICONS[id];
    return (
      <IconButton
        key={id}
        size="small"
        label={label}
        onClick={run}
        icon={Icon ? <Icon size={15} /> : null}
      />
    );
  };
  return (
    <div role="toolbar" aria-label="Align" className="flex gap-1 px-4 pb-2">
      {ALIGNMENTS.map(([by, label]) => button(by, label, () => align(by, label)))}
      {nodes > 2
        ? DISTRIBUTIONS.map(([along, label]) =>
            button(along, label, () => distribute(along, label)),
          )
        : null}
    </div>
  );
}

/** The fields of several nodes of one kind: what is set here is set in all of them, as one undo step. */
function ManyFields({ kind, nodes }: { kind: string; nodes: readonly string[] }) {
  const { catalog } = useOpenLoop();
  const all = useDocument((state) => state.document.nodes);
  const { hidden } = useOtherModes(nodes[0] ?? "");
  const shared = useNodesForm(nodes, hidden, `Change ${formatPlural(nodes.length, "node")}`);
  const info = catalog.kinds[kind];
  const field = info ? readSchema(info.schema) : null;
  const { value, differing } = useMemo(
    () =>
      commonOf(
        field,
        nodes.map((id) => all[id]),
      ),
    [field, nodes, all],
  );
  const words = new Map([...differing].map(([path, values]) => [path, wordsOf(values)]));
  const form = { ...shared, differing: words };
  if (field?.shape !== "object") return null;
  return (
    <FormContext value={form}>
      <FormLabels form={field}>
        <ObjectFields
          field={field}
          path={[]}
          value={isObject(value) ? value : {}}
          without={["kind"]}
        />
      </FormLabels>
    </FormContext>
  );
}

/** "8, 16, not set", each once. */
function wordsOf(values: readonly (Json | undefined)[]): string {
  const words = values.map((value) => {
    if (value === undefined) return "not set";
    if (!isObject(value)) return typeof value === "string" ? value : JSON.stringify(value);
    return Object.values(value).find((one) => typeof one === "string") ?? "set";
  });
  return [...new Set(words)].join(", ");
}
