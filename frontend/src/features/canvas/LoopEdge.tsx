import { BaseEdge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { outputPort } from "@/document/canConnect";
import { useDocument, useOpenLoop } from "@/document/context";
import { edgeIndex, portRef, runKey } from "@/document/edges";
import { edgeText } from "@/document/edgeText";
import { kindOf } from "@/document/geometry";
import { useEdgeActivity } from "@/live/hooks";
import { portColor } from "@/ui/PortMark";
import { EdgeLabel } from "./EdgeLabel";
import { edgeLine } from "./edgePath";

/** Edges into different ports run beside each other, not over each other. */
const LANE_STEP = 8;

/** An edge in the colour of its type, with its options and, in a run, its rate. */
export const LoopEdge = memo(function LoopEdge(props: EdgeProps) {
  const { id, selected, source, target } = props;
  const { catalog } = useOpenLoop();
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, id)]);
  const type = useDocument((state) =>
    edge ? outputPort(catalog, state.document, portRef(edge.from))?.type : undefined,
  );
  const targetKind = useDocument((state) => state.document.nodes[target]?.kind);
  const targetRow = rowOf(kindOf(catalog, targetKind)?.inputs, props.targetHandleId);
  const sourceKind = useDocument((state) => state.document.nodes[source]?.kind);
  // The first stage of a node is the one that its outputs come from.
  const stage = `${source}.${kindOf(catalog, sourceKind)?.stages[0] ?? ""}`;
  const live = useEdgeActivity(edge ? runKey(edge) : "", stage);
  if (!edge) return null;

  const laneY = typeof props.data?.laneY === "number" ? props.data.laneY : null;
  const line = edgeLine(props, laneY, laneY === null ? 0 : (targetRow % 5) * LANE_STEP);
  const portType = catalog.port_types[type ?? ""];

  return (
    <>
      <BaseEdge
        id={id}
        path={line.path}
        interactionWidth={18}
        className="loop-edge"
        {...(props.markerEnd ? { markerEnd: props.markerEnd } : {})}
        data-selected={selected || undefined}
        data-active={live?.isActive || undefined}
        data-bottleneck={live?.isBottleneck || undefined}
        style={
          {
            "--edge-color": portColor(portType?.color),
            strokeDasharray: portType?.handle ? "6 4" : undefined,
            opacity: edge.weight === 0 ? 0.35 : undefined,
          } as React.CSSProperties
        }
      />
      <EdgeLabel
        id={id}
        run={runKey(edge)}
        stage={stage}
        text={edgeText(edge)}
        rate={live?.label ?? ""}
        isEvaluation={live?.isEvaluation ?? false}
        isSelected={selected === true}
        x={line.labelX}
        y={line.labelY}
      />
    </>
  );
});

function rowOf(
  ports: readonly { name: string }[] | undefined,
  name: string | null | undefined,
): number {
  return Math.max(0, ports?.findIndex((port) => port.name === name) ?? 0);
}
