/** Names of the ends of edges: of a port at a side its own, of one edge at a bottom the port's and the edge's. */
import { useConnection } from "@xyflow/react";

const BETWEEN = "#";

export function socketHandle(port: string, key: string): string {
  return `${port}${BETWEEN}${key}`;
}

export function portOfHandle(handle: string | null | undefined): string {
  return handle?.split(BETWEEN)[0] ?? "";
}

/** The port that an edge is being drawn from, as one comparable text; null while none is. */
export function useDrawnFrom(): string | null {
  return useConnection((connection) =>
    connection.inProgress && connection.fromHandle
      ? `${connection.fromHandle.type} ${connection.fromHandle.nodeId}.${portOfHandle(connection.fromHandle.id)}`
      : null,
  );
}

export function readDrawnFrom(text: string) {
  const [side = "", name = ""] = text.split(" ");
  const dot = name.indexOf(".");
  return {
    ref: { node: name.slice(0, dot), port: name.slice(dot + 1) },
    isOutput: side === "source",
  };
}
