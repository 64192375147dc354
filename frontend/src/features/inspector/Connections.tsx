import { X } from "lucide-react";
import { useMemo, useState } from "react";
import type { Catalog } from "@/api/types";
import { canConnect } from "@/document/canConnect";
import { connect } from "@/document/commands/connect";
import { removeItems } from "@/document/commands/removeItems";
import { useDocument, useOpenLoop } from "@/document/context";
import { edgeKeys, portRef, portText } from "@/document/edges";
import type { Edge, LoopDocument } from "@/document/types";
import { edgeText } from "@/features/canvas/edgeText";
import { useSelection } from "@/session/selection";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";

/** What a node is connected to, and a way to connect it without the mouse. */
export function Connections({ node }: { node: string }) {
  const { catalog, store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const isReadonly = useDocument((state) => state.isReadonly);
  const keys = edgeKeys(document.edges);
  const own = document.edges
    .map((edge, index) => ({ edge, key: keys[index] ?? "" }))
    .filter(({ edge }) => portRef(edge.from).node === node || portRef(edge.to).node === node);

  // Looked for when the list is opened: in a large loop there are many pairs of ports.
  const [isAsked, setAsked] = useState(false);
  const options = useMemo(
    () => (isAsked && !isReadonly ? possibleEdges(catalog, document, node) : []),
    [catalog, document, node, isAsked, isReadonly],
  );

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
              onClick={() => useSelection.getState().select({ edges: [key] })}
            >
              {edge.from} <span className="text-faint">→</span> {edge.to}
              {edgeText(edge) ? <span className="text-faint"> {edgeText(edge)}</span> : null}
            </button>
            {isReadonly ? null : (
              <IconButton
                label={`Disconnect ${edge.from} from ${edge.to}`}
                size="small"
                className="size-5 opacity-0 focus-visible:opacity-100 group-hover:opacity-100"
                onClick={() =>
                  store
                    .getState()
                    .dispatch(removeItems, { nodes: [], edges: [key] }, { label: "Disconnect" })
                }
              >
                <X size={12} />
              </IconButton>
            )}
          </li>
        ))}
      </ul>
      {isReadonly ? null : (
        <select
          aria-label="Connect to"
          className={`${WIDE_CONTROL} mt-1 pr-1 text-muted`}
          value=""
          onFocus={() => setAsked(true)}
          onPointerEnter={() => setAsked(true)}
          onChange={(event) => {
            const edge = options[Number(event.target.value)];
            if (edge) store.getState().dispatch(connect, { edge });
          }}
        >
          <option value="">
            {isAsked && options.length === 0 ? "Nothing else fits" : "Connect…"}
          </option>
          {options.map((edge, index) => (
            <option key={`${edge.from} ${edge.to}`} value={index}>
              {edge.from} → {edge.to}
            </option>
          ))}
        </select>
      )}
    </section>
  );
}

/** Every edge that this node could still get, outgoing ones first. */
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
  ];
  return pairs
    .filter(({ from, to }) => canConnect(catalog, document, from, to).ok)
    .map(({ from, to }) => ({ from: portText(from), to: portText(to) }));
}
