import type { ConnectionLineComponentProps } from "@xyflow/react";
import { canConnect, inputPort, outputPort } from "@/document/canConnect";
import { curvePath } from "@/graph/edgePath";
import type { Point } from "@/graph/shapes";
import { useOpenLoop } from "@/state/document/context";
import { portColor } from "@/ui/PortMark";
import { inOrder, startAt, useMovingEdge } from "./handles";

export function ConnectionLine(props: ConnectionLineComponentProps) {
  const { fromX, fromY, toX, toY, fromHandle, toHandle } = props;
  const { catalog, store } = useOpenLoop();
  const { document } = store.getState();
  const movedEdge = useMovingEdge((state) => state.key);
  const start = startAt(fromHandle);
  const findPort = start.isOutput ? outputPort : inputPort;
  const port = findPort(catalog, document, start);
  const [from, to] = inOrder(start, toHandle && startAt(toHandle));
  const connection = from && to ? canConnect(catalog, document, from, to, movedEdge) : null;
  const endpoints: [Point, Point] = [
    [fromX, fromY],
    [toX, toY],
  ];
  const [left, right] = start.isOutput ? endpoints : [endpoints[1], endpoints[0]];
  const isRefused = connection !== null && !connection.ok;
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
            {connection.reason}
          </div>
        </foreignObject>
      ) : null}
    </g>
  );
}
