import { Trash2 } from "lucide-react";
import { useMemo } from "react";
import { readSchema } from "@/catalog/schema";
import { outputPort } from "@/document/canConnect";
import { edgeIndex, portRef } from "@/document/edges";
import { problemsAt } from "@/document/problems";
import { listedIndex } from "@/document/unread";
import { joinPath } from "@/lib/paths";
import { setEdgeOption } from "@/state/commands/edges";
import { removeItems } from "@/state/commands/nodes";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { clearSelection } from "@/state/selection";
import { IconButton } from "@/ui/IconButton";
import { PortMark } from "@/ui/PortMark";
import { RichText } from "@/ui/RichText";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext, type FormSettings } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { InspectorHeader } from "./InspectorHeader";
import { noteEdit } from "./noteEdit";
import { useValueForm } from "./useValueForm";

export function EdgeInspector({ edgeKey }: { edgeKey: string }) {
  const { catalog, store, runId } = useOpenLoop();
  // Where the server finds it.
  const index = useDocument((state) =>
    listedIndex(state.document, edgeIndex(state.document, edgeKey)),
  );
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, edgeKey)]);
  const isReadonly = useDocument((state) => state.isReadonly);
  const type = useDocument((state) =>
    edge ? outputPort(catalog, state.document, portRef(edge.from))?.type : undefined,
  );
  const shared = useValueForm(["edges", edge?.id ?? index]);
  const form = useMemo<FormSettings>(
    () => ({
      ...shared,
      // Diagnostics count edges; paths of edits may use their ids.
      base: ["edges", index],
      write: (path, value, keep = 0) => {
        const full = joinPath(["edges", edge?.id ?? index, ...path]);
        store.dispatch(
          setEdgeOption,
          { key: edgeKey, path, value, keep },
          { group: full, isHotEdit: runId !== null },
        );
        if (runId) noteEdit({ catalog, store }, full, value);
      },
    }),
    [shared, index, edge?.id, edgeKey, catalog, store, runId],
  );
  if (!edge) return null;
  const schema = catalog.schema.edge;
  const field = schema ? readSchema(schema) : null;
  const portType = catalog.port_types[type ?? ""];

  return (
    <>
      <InspectorHeader
        icon={
          <PortMark
            shape={portType?.shape ?? ""}
            color={portType?.color ?? ""}
            isHandle={portType?.handle ?? false}
            size={16}
          />
        }
        title={<h2 className="truncate font-semibold text-sm">Connection</h2>}
        subtitle={type ? `carries ${type}` : ""}
        actions={
          isReadonly ? null : (
            <IconButton
              label="Delete"
              keys="⌫"
              size="small"
              onClick={() => {
                store.dispatch(
                  removeItems,
                  { nodes: [], edges: [edgeKey] },
                  { label: "Disconnect" },
                );
                clearSelection();
              }}
            >
              <Trash2 size={14} />
            </IconButton>
          )
        }
      />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 py-2">
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
        <FieldProblems problems={problemsAt(form.diagnostics, `edges.${index}`, true)} />
        <FormContext value={form}>
          {field?.shape === "object" ? (
            <FormFields field={field} value={edge} without={["from", "to", "source", "target"]} />
          ) : null}
        </FormContext>
      </div>
    </>
  );
}
