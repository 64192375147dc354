import type { NodeProps } from "@xyflow/react";
import { memo } from "react";
import { useDocument, useNodeColor, useOpenLoop } from "@/document/context";
import { foldTop, kindOf } from "@/document/geometry";
import { isLearner } from "@/document/identities";
import { softColor } from "@/lib/colors";
import { useNodeActivity } from "@/live/hooks";
import { CardHeader } from "./CardHeader";
import { CardSockets } from "./CardSockets";
import { CardValues } from "./CardValues";
import { LearnBar } from "./LearnBar";
import { LiveBadge, useHasFailed } from "./LiveBadge";
import { LiveNodeFooter } from "./LiveNodeFooter";
import { NodeBadge } from "./NodeBadge";
import { NodePort } from "./NodePort";
import { PortFold } from "./PortFold";
import type { Socket } from "./sockets";
import { useNodePorts } from "./useNodePorts";

const NO_SOCKETS: readonly Socket[] = [];

/** A box of the graph, drawn from the catalog. */
export const LoopNode = memo(function LoopNode({ id, selected, data: drawn }: NodeProps) {
  const { catalog, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[id]);
  const color = useNodeColor(id);
  const activity = useNodeActivity(id);
  const hasFailed = useHasFailed(id);
  const learns = useDocument((state) => isLearner(catalog, state.document, id));
  const ports = useNodePorts(id);
  if (!data) return null;
  const kind = kindOf(catalog, data.kind);
  const rows = Math.max(ports.inputs.length, ports.outputs.length);
  const fold = { node: id, fitting: ports.fitting, top: foldTop(rows), isReachable: selected };
  const hasFold = ports.foldedInputs.length + ports.foldedOutputs.length > 0;

  return (
    <article
      className="loop-node"
      data-selected={selected || undefined}
      data-activity={activity}
      data-failed={hasFailed || undefined}
      data-unknown={kind === undefined || undefined}
      data-learns={learns || undefined}
      style={{ "--node-color": color, "--node-soft": softColor(color) } as React.CSSProperties}
      aria-label={`${id}, ${kind?.title ?? data.kind}`}
    >
      <CardHeader node={id} isReachable={selected} />
      {runId ? <LiveBadge node={id} /> : <NodeBadge node={id} />}
      <div className="loop-node-ports" data-fold={hasFold || undefined}>
        <div>
          {ports.inputs.map((port) => (
            <NodePort key={port.name} node={id} port={port} side="input" />
          ))}
        </div>
        <div>
          {ports.outputs.map((port) => (
            <NodePort key={port.name} node={id} port={port} side="output" />
          ))}
        </div>
      </div>
      <PortFold
        {...fold}
        side="input"
        ports={ports.foldedInputs}
        isDrawnFrom={ports.drawnFrom === "inputs"}
      />
      <PortFold
        {...fold}
        side="output"
        ports={ports.foldedOutputs}
        isDrawnFrom={ports.drawnFrom === "outputs"}
      />
      {runId ? <LiveNodeFooter node={id} /> : <CardValues node={id} isReachable={selected} />}
      {learns ? <LearnBar node={id} isReachable={selected} /> : null}
      <CardSockets node={id} sockets={(drawn.sockets as readonly Socket[]) ?? NO_SOCKETS} />
    </article>
  );
});
