import type { NodeProps } from "@xyflow/react";
import { memo } from "react";
import { useDocument, useNodeColor, useOpenLoop } from "@/document/context";
import { kindOf, rateLines } from "@/document/geometry";
import { formatName } from "@/lib/format";
import { useNodeActivity } from "@/live/hooks";
import { KindIcon } from "@/ui/KindIcon";
import { FoldedPorts } from "./FoldedPorts";
import { LiveBadge, useHasFailed } from "./LiveBadge";
import { LiveNodeFooter } from "./LiveNodeFooter";
import { NodeBadge } from "./NodeBadge";
import { NodePort } from "./NodePort";
import { summarise } from "./summary";
import { useNodePorts } from "./useNodePorts";
import { usePointedAt } from "./usePointedAt";

/** A box of the graph, drawn from the catalog. */
export const LoopNode = memo(function LoopNode({ id, selected, dragging }: NodeProps) {
  const { catalog, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[id]);
  const color = useNodeColor(id);
  const activity = useNodeActivity(id);
  const { isPointedAt, pointing } = usePointedAt();
  const hasFailed = useHasFailed(id);
  const lines = useDocument((state) => rateLines(catalog, state.document, id));
  const ports = useNodePorts(id, (selected || isPointedAt) && !dragging);
  if (!data) return null;
  const kind = kindOf(catalog, data.kind);
  const summary = summarise(kind, data);

  return (
    <article
      className="loop-node"
      data-selected={selected || undefined}
      data-activity={activity}
      data-failed={hasFailed || undefined}
      data-unknown={kind === undefined || undefined}
      style={{ "--node-color": color } as React.CSSProperties}
      aria-label={`${id}, ${kind?.title ?? data.kind}`}
      {...pointing}
    >
      <header className="loop-node-header" title={kind?.help}>
        <span className="loop-node-icon">
          <KindIcon name={kind?.icon} />
        </span>
        <span className="min-w-0 flex-1">
          <span className="loop-node-name" title={id}>
            {id}
          </span>
          <span className="loop-node-kind" title={summary || undefined}>
            <b>{kind?.title ?? formatName(data.kind)}</b>
            {summary ? ` · ${summary}` : ""}
          </span>
        </span>
        {runId ? <LiveBadge node={id} /> : <NodeBadge node={id} />}
      </header>
      <div className="loop-node-ports">
        <div className="min-w-0">
          {ports.inputs.map((port, row) => (
            <NodePort key={port.name} node={id} port={port} side="input" row={row} />
          ))}
        </div>
        <div className="min-w-0">
          {ports.outputs.map((port, row) => (
            <NodePort key={port.name} node={id} port={port} side="output" row={row} />
          ))}
        </div>
      </div>
      {runId || ports.isOpen ? null : (
        <FoldedPorts inputs={ports.foldedInputs} outputs={ports.foldedOutputs} />
      )}
      {runId ? <LiveNodeFooter node={id} lines={lines} /> : null}
    </article>
  );
});
