import type { ConnectionLineComponentProps } from "@xyflow/react";
import { canConnect, inputPort, outputPort } from "@/document/canConnect";
import { curvePath } from "@/graph/edgePath";
import type { Point } from "@/graph/shapes";
import { useOpenLoop } from "@/state/document/context";
import { portColor } from "@/ui/PortMark";
import { portOfHandle } from "./handles";
import { useMovingEdge } from "./movingEdge";

export function ConnectionLine(props: ConnectionLineComponentProps) {
  const { fromX, fromY, toX, toY, fromHandle, toHandle } = props;
  const { catalog, store } = useOpenLoop();
  const { document } = store.getState();
  const moved = useMovingEdge((state) => state.key);
  const start = { node: fromHandle.nodeId, port: portOfHandle(fromHandle.id) };
  const isFromOutput = fromHandle.type === "source";
  const port = isFromOutput
    ? outputPort(catalog, document, start)
    : inputPort(catalog, document, start);
  const end = toHandle ? { node: toHandle.nodeId, port: portOfHandle(toHandle.id) } : null;
  const [from, to] = isFromOutput ? [start, end] : [end, start];
  const answer = from && to ? canConnect(catalog, document, from, to, moved) : null;
  const [left, right]: [Point, Point] = isFromOutput
    ? [
        [fromX, fromY],
        [toX, toY],
      ]
    : [
        [toX, toY],
        [fromX, fromY],
      ];
  const isRefused = answer !== null && !answer.ok;
  return (
    <g>
      <path
        d={curvePath(left, right)}
        fill="none"
        strokeWidth={2}
        strokeDasharray={isRefused ? "4 4" : undefined}
        stroke={isRefused ? "var(--error)" : portColor(catalog.port_types[port?.type ?? ""]?.color)}
      />
      {isRefused ? (
        <foreignObject
          x={toX + 14}
          y={toY + 10}
          width={280}
          height={80}
          className="pointer-events-none"
        >
          <div className="inline-block rounded-2 border border-line bg-raised px-2 py-1 text-error text-xs shadow-2">
            {answer.reason}
          </div>
        </foreignObject>
      ) : null}
    </g>
  );
}
