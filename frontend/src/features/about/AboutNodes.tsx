import type { AboutPreset } from "@/api/types";
import { useCatalog, useDocument, useNodeColors } from "@/document/context";
import { useSelection } from "@/session/selection";
import { KindIcon } from "@/ui/KindIcon";
import { RichText } from "@/ui/RichText";

/** What each node does, in its colour; pressed, it is chosen. */
export function AboutNodes({ nodes }: { nodes: AboutPreset["nodes"] }) {
  const catalog = useCatalog();
  const colors = useNodeColors();
  const there = useDocument((state) => state.document.nodes);
  const select = useSelection((state) => state.select);
  return (
    <ul className="-mx-1 flex flex-col">
      {nodes.map(({ node, kind, does }) => (
        <li key={node}>
          <button
            type="button"
            aria-disabled={!(node in there) || undefined}
            title={node in there ? `Choose ${node}` : `${node} is no longer in the loop`}
            className="flex w-full gap-2 rounded-1 px-1 py-1 text-left text-xs hover:bg-hover aria-disabled:opacity-60"
            onClick={() => {
              if (node in there) select({ nodes: [node] });
            }}
          >
            <span className="pt-0.5" style={{ color: colors[node] ?? "var(--muted)" }}>
              <KindIcon name={catalog.kinds[kind]?.icon} size={14} />
            </span>
            <span className="min-w-0">
              <span className="font-medium font-mono">{node}</span>{" "}
              <span className="text-muted">
                <RichText text={does} />
              </span>
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
