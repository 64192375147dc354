import { Handle, Position, useConnection } from "@xyflow/react";
import { GraduationCap } from "lucide-react";
import { memo } from "react";
import type { InputPort, OutputPort } from "@/api/types";
import { canConnect } from "@/document/canConnect";
import { useDocument, useOpenLoop } from "@/document/context";
import { edgeFacts, portText } from "@/document/edges";
import { portTop } from "@/document/geometry";
import { classes } from "@/ui/classes";
import { PortMark } from "@/ui/PortMark";
import { useMovingEdge } from "./movingEdge";

interface NodePortProps {
  node: string;
  port: InputPort | OutputPort;
  side: "input" | "output";
  row: number;
}

/** A port with its name. While an edge is drawn, ports that cannot take it fade and say why. */
export const NodePort = memo(function NodePort({ node, port, side, row }: NodePortProps) {
  const { catalog, store } = useOpenLoop();
  const name = portText({ node, port: port.name });
  const isInput = side === "input";
  const isConnected = useDocument((state) => {
    const facts = edgeFacts(state.document.edges);
    return (isInput ? facts.inputs : facts.outputs).has(name);
  });
  const isReadonly = useDocument((state) => state.isReadonly);
  const drawnFrom = useConnection((connection) =>
    connection.inProgress && connection.fromHandle
      ? `${connection.fromHandle.type} ${connection.fromHandle.nodeId}.${connection.fromHandle.id}`
      : null,
  );
  const moved = useMovingEdge((state) => state.key);
  const blocked = drawnFrom === null ? null : blockedReason(drawnFrom);
  const type = catalog.port_types[port.type];
  const isTeaching = "teaching" in port && port.teaching;
  const title = [
    `${port.name}: ${port.type}`,
    port.help,
    isTeaching ? "Teaching port: a phase can learn from it." : null,
    blocked,
  ]
    .filter(Boolean)
    .join("\n");

  function blockedReason(start: string): string | null {
    const [startSide, startName = ""] = start.split(" ");
    const [startNode = "", startPort = ""] = startName.split(".");
    if (startName === name) return null;
    if ((startSide === "source") !== isInput) return "Connect an output to an input.";
    const own = { node, port: port.name };
    const other = { node: startNode, port: startPort };
    const { document } = store.getState();
    const [from, to] = isInput ? [other, own] : [own, other];
    const answer = canConnect(catalog, document, from, to, moved);
    return answer.ok ? null : answer.reason;
  }

  return (
    <div
      className={classes("node-port", isInput ? "node-port-in" : "node-port-out")}
      data-blocked={blocked !== null || undefined}
      data-open={(drawnFrom !== null && blocked === null) || undefined}
      data-connected={isConnected || undefined}
      title={title}
    >
      <Handle
        id={port.name}
        type={isInput ? "target" : "source"}
        position={isInput ? Position.Left : Position.Right}
        isConnectable={!isReadonly}
        style={{ top: portTop(row) }}
        role="img"
        aria-label={`${side} ${name}`}
      >
        <PortMark
          shape={type?.shape ?? "circle"}
          color={type?.color ?? ""}
          isHandle={type?.handle ?? false}
          isConnected={isConnected}
        />
      </Handle>
      <span className="-my-1 truncate py-1">{port.name}</span>
      {isTeaching ? (
        <GraduationCap
          size={12}
          className="node-port-teaching"
          role="img"
          aria-label="teaching port"
        />
      ) : null}
    </div>
  );
});
