import { useDocument, useOpenLoop } from "@/document/context";
import { kindOf } from "@/document/geometry";
import { formatName } from "@/lib/format";
import { KindIcon } from "@/ui/KindIcon";
import { BusyRing } from "./BusyRing";
import { summarise } from "./summary";

/** Name, kind and model of a node, with its sign. */
export function CardHeader({ node }: { node: string }) {
  const { catalog, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  if (!data) return null;
  const kind = kindOf(catalog, data.kind);
  const title = kind?.title ?? formatName(data.kind);
  const summary = summarise(kind, data);
  const line = summary ? `${title} · ${summary}` : title;
  return (
    <header className="loop-node-header" title={kind?.help}>
      <span className="loop-node-icon">
        <KindIcon name={kind?.icon} />
        {runId ? <BusyRing node={node} /> : null}
      </span>
      <span className="min-w-0 flex-1">
        <span className="loop-node-name" title={node}>
          {node}
        </span>
        <span className="loop-node-kind" title={line}>
          {line}
        </span>
      </span>
    </header>
  );
}
