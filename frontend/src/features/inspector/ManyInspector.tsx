import { Copy, Network, Trash2 } from "lucide-react";
import { removeItems } from "@/document/commands/removeItems";
import { useDocument, useOpenLoop } from "@/document/context";
import { formatPlural } from "@/lib/format";
import { useSelection } from "@/session/selection";
import { useArrange } from "@/session/useArrange";
import { useClipboard } from "@/session/useClipboard";
import { Button } from "@/ui/Button";
import { InspectorHeader } from "./InspectorHeader";

/** What can be done with several things at once. */
export function ManyInspector() {
  const { store } = useOpenLoop();
  const nodes = useSelection((state) => state.nodes);
  const edges = useSelection((state) => state.edges);
  const isReadonly = useDocument((state) => state.isReadonly);
  const arrange = useArrange();
  const { copy, duplicate } = useClipboard();
  const words = [
    nodes.length > 0 ? formatPlural(nodes.length, "node") : null,
    edges.length > 0 ? formatPlural(edges.length, "connection") : null,
  ].filter(Boolean);
  return (
    <>
      <InspectorHeader
        title={<h2 className="font-semibold text-sm">Selection</h2>}
        subtitle={words.join(", ")}
        hasLevels={false}
      />
      <div className="flex flex-col items-start gap-2 p-4">
        <Button size="small" icon={<Copy size={14} />} onClick={() => copy(nodes)}>
          Copy
        </Button>
        {isReadonly ? null : (
          <>
            <Button size="small" icon={<Copy size={14} />} onClick={() => duplicate(nodes)}>
              Duplicate
            </Button>
            <Button size="small" icon={<Network size={14} />} onClick={arrange}>
              Arrange
            </Button>
            <Button
              size="small"
              look="danger"
              icon={<Trash2 size={14} />}
              onClick={() => {
                store.getState().dispatch(removeItems, { nodes, edges });
                useSelection.getState().clear();
              }}
            >
              Delete
            </Button>
          </>
        )}
      </div>
    </>
  );
}
