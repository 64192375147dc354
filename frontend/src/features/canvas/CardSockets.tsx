import { Handle, Position } from "@xyflow/react";
import { ArrowUp } from "lucide-react";
import type { InputPort, OutputPort } from "@/api/types";
import { kindOf } from "@/graph/geometry";
import type { Socket } from "@/graph/sockets";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { PortMark } from "@/ui/PortMark";
import { socketHandle } from "./handles";
import { portTitle } from "./NodePort";
import { useMeasured } from "./useNodePorts";
import { usePortFit } from "./usePortFit";

export function CardSockets({ node, sockets }: { node: string; sockets: readonly Socket[] }) {
  useMeasured(node, sockets.map(({ key, x, side }) => `${key} ${x} ${side}`).join(","));
  return sockets.map((socket, index) => {
    const isFirst =
      sockets.findIndex((one) => one.port === socket.port && one.isTarget === socket.isTarget) ===
      index;
    return <CardSocket key={`${socket.key} ${socket.isTarget}`} {...{ node, socket, isFirst }} />;
  });
}

interface CardSocketProps {
  node: string;
  socket: Socket;
  /** The first socket of its port: its label is that of the port, without the edge. */
  isFirst: boolean;
}

function CardSocket({ node, socket, isFirst }: CardSocketProps) {
  const { catalog } = useOpenLoop();
  const { key, port: name, isTarget, isTie, side, x } = socket;
  const kind = useDocument((state) => kindOf(catalog, state.document.nodes[node]?.kind));
  const isReadonly = useDocument((state) => state.isReadonly);
  const { blocked, isOpen } = usePortFit(node, name, isTarget);
  const ports: readonly (InputPort | OutputPort)[] =
    (isTarget ? kind?.inputs : kind?.outputs) ?? [];
  const port = ports.find((one) => one.name === name);
  if (!port) return null;
  const type = catalog.port_types[port.type];
  const label = `${isTarget ? "input" : "output"} ${node}.${name}`;
  const isTeaching = isTarget && "teaching" in port && port.teaching && !isTie;
  return (
    <Handle
      id={socketHandle(name, key)}
      type={isTarget ? "target" : "source"}
      position={side === "top" ? Position.Top : Position.Bottom}
      isConnectable={!isReadonly}
      className="card-socket"
      data-blocked={blocked !== null || undefined}
      data-open={isOpen || undefined}
      style={{ left: x }}
      title={portTitle(port, blocked)}
      role="img"
      aria-label={isFirst ? label : `${label}, ${key}`}
    >
      {isTeaching ? (
        <span className="card-socket-round">
          <ArrowUp size={11} strokeWidth={3} aria-hidden="true" />
        </span>
      ) : (
        <PortMark
          shape={type?.shape ?? "circle"}
          color={type?.color ?? ""}
          isHandle={type?.handle ?? false}
        />
      )}
    </Handle>
  );
}
