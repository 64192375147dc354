import { X } from "lucide-react";
import { edgeKeys, portRef } from "@/document/edges";
import { edgeText } from "@/graph/edgeKinds";
import { removeItems } from "@/state/commands/nodes";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { IconButton } from "@/ui/IconButton";
import { ConnectTo } from "./ConnectTo";

/** What a node is connected to, and a way to connect it without the mouse. */
export function Connections({ node }: { node: string }) {
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
              onClick={() => useSelection.getState().select({ edges: [key] })}
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
      {isReadonly ? null : <ConnectTo key={node} node={node} />}
    </section>
  );
}
