import { readSchema } from "@/catalog/schema";
import { outputPort } from "@/document/canConnect";
import { edgeIndex, portRef } from "@/document/edges";
import { listedIndex } from "@/document/unread";
import { removeItems } from "@/state/commands/nodes";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { PortMark } from "@/ui/PortMark";
import { RichText } from "@/ui/RichText";
import { useEdgeForm } from "./forms";
import { InspectorBody, InspectorForm, InspectorHeader, RemoveButton } from "./InspectorHeader";

export function EdgeInspector({ edgeKey }: { edgeKey: string }) {
  const { catalog, store } = useOpenLoop();
  // Where the server finds it.
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
    <>
      <InspectorHeader
        icon={<PortMark type={portType} size={16} />}
        title="Connection"
        subtitle={type ? `carries ${type}` : ""}
        actions={<RemoveButton label="Delete" keys="⌫" onRemove={remove} />}
      />
      <InspectorBody>
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
      </InspectorBody>
    </>
  );
}
