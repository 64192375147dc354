import { Handle, type Position } from "@xyflow/react";
import type { CSSProperties, ReactNode } from "react";
import type { Catalog, InputPort, OutputPort } from "@/api/types";
import { asItTeaches } from "@/document/canConnect";
import { kindOf } from "@/graph/geometry";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { usePortFit } from "./usePortFit";

type Port = InputPort | OutputPort;
type PortType = Catalog["port_types"][string] | undefined;

interface PortHandleProps {
  node: string;
  name: string;
  isTarget: boolean;
  id: string;
  mark?: string;
  position: Position;
  className: string;
  style: (type: PortType) => CSSProperties;
  children?: (port: Port, type: PortType) => ReactNode;
}

/** An end of edges without its name. While an edge is drawn it fades where it cannot take it, and says why. */
export function PortHandle(props: PortHandleProps) {
  const { node, name, isTarget, id, mark = "", position, className, style, children } = props;
  const { catalog } = useOpenLoop();
  const kind = useDocument((state) => kindOf(catalog, state.document.nodes[node]?.kind));
  const isReadonly = useDocument((state) => state.isReadonly);
  const { blocked, isOpen } = usePortFit(node, name, isTarget);
  const ports: readonly Port[] = (isTarget ? kind?.inputs : kind?.outputs) ?? [];
  const own = ports.find((one) => one.name === name);
  const isTeaching = useDocument(
    (state) =>
      own !== undefined &&
      "teaching" in own &&
      asItTeaches(catalog, state.document.nodes[node], own).teaching,
  );
  if (!own) return null;
  const port = "teaching" in own ? { ...own, teaching: isTeaching } : own;
  const type = catalog.port_types[port.type];
  return (
    <Handle
      id={id}
      type={isTarget ? "target" : "source"}
      position={position}
      isConnectable={!isReadonly}
      className={className}
      data-blocked={blocked !== null || undefined}
      data-open={isOpen || undefined}
      style={style(type)}
      title={portTitle(port, blocked, isTeaching)}
      role="img"
      aria-label={`${isTarget ? "input" : "output"} ${node}.${name}${mark}`}
    >
      {children?.(port, type)}
    </Handle>
  );
}

export function portTitle(
  port: InputPort | OutputPort,
  blocked: string | null,
  isTeaching: boolean,
): string {
  return [
    `${port.name}: ${port.type}`,
    port.help,
    isTeaching ? "Teaching port: a phase can learn from it." : null,
    blocked,
  ]
    .filter(Boolean)
    .join("\n");
}
