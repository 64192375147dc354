import { BaseEdge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { outputPort } from "@/document/canConnect";
import { useDocument, useOpenLoop, useSync } from "@/document/context";
import { isAlwaysDead } from "@/document/deadEdges";
import { edgeIndex, portRef, runKey } from "@/document/edges";
import { edgeText } from "@/document/edgeText";
import { kindOf } from "@/document/geometry";
import { useEdgeActivity } from "@/live/hooks";
import { portColor } from "@/ui/PortMark";
import { EdgeLabel } from "./EdgeLabel";
import { edgeLine } from "./edgePath";
import type { Route } from "./routes";

/** An edge in the colour of its type, with its options and, in a run, its rate. */
export const LoopEdge = memo(function LoopEdge(props: EdgeProps) {
  const { id, selected, source } = props;
  const { catalog } = useOpenLoop();
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, id)]);
  const type = useDocument((state) =>
    edge ? outputPort(catalog, state.document, portRef(edge.from))?.type : undefined,
  );
  const sourceKind = useDocument((state) => state.document.nodes[source]?.kind);
  // The first stage of a node is the one that its outputs come from.
  const stage = `${source}.${kindOf(catalog, sourceKind)?.stages[0] ?? ""}`;
  const key = edge ? runKey(edge) : "";
  const live = useEdgeActivity(key, stage);
  const isDead = useSync((state) => isAlwaysDead(state.check?.plan, key));
  if (!edge) return null;

  const route = props.data?.route as Route | undefined;
  const line = edgeLine(props, route?.lane ?? null, route?.bend);
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
            opacity: isDead ? 0.35 : undefined,
          } as React.CSSProperties
        }
      />
      <EdgeLabel
        id={id}
        run={key}
        stage={stage}
        text={edgeText(catalog, edge)}
        rate={live?.label ?? ""}
        isEvaluation={live?.isEvaluation ?? false}
        isSelected={selected === true}
        place={route?.label ?? null}
        spare={line.at(0.5)}
      />
    </>
  );
});
