import { Position } from "@xyflow/react";
import { ArrowUp } from "lucide-react";
import type { Socket } from "@/graph/sockets";
import { PortMark } from "@/ui/PortMark";
import { socketHandle } from "./handles";
import { PortHandle } from "./PortHandle";
import { useMeasured } from "./useNodePorts";

interface CardSocketsProps {
  node: string;
  sockets: readonly Socket[];
}

/** Ends of learning edges and ties at the bottom or top of a card: one for each edge. */
export function CardSockets({ node, sockets }: CardSocketsProps) {
  useMeasured(node, sockets.map(({ key, x, side }) => `${key} ${x} ${side}`).join(","));
  return sockets.map(({ key, port: name, isTarget, isTie, side, x }, index) => {
    const isSame = (one: Socket) => one.port === name && one.isTarget === isTarget;
    return (
      <PortHandle
        key={`${key} ${isTarget}`}
        node={node}
        name={name}
        isTarget={isTarget}
        id={socketHandle(name, key)}
        // The first socket of its port has the label of the port, without the edge.
        mark={sockets.findIndex(isSame) === index ? "" : `, ${key}`}
        position={side === "top" ? Position.Top : Position.Bottom}
        className="card-socket"
        style={() => ({ left: x })}
      >
        {(port, type) =>
          isTarget && "teaching" in port && port.teaching && !isTie ? (
            <span className="card-socket-round">
              <ArrowUp size={11} strokeWidth={3} aria-hidden="true" />
            </span>
          ) : (
            <PortMark type={type} />
          )
        }
      </PortHandle>
    );
  });
}
