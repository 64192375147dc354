/** Drawing edges: onto a port, onto a box, onto empty canvas (asks what to add), and moving an end. */

import {
  type Connection,
  type FinalConnectionState,
  type Edge as FlowEdge,
  useReactFlow,
} from "@xyflow/react";
import { useMemo } from "react";
import { canConnect } from "@/document/canConnect";
import { portText } from "@/document/edges";
import type { PortRef } from "@/document/types";
import { toLoop } from "@/state/canvas";
import { connect, reconnectEdge } from "@/state/commands/edges";
import { removeItems } from "@/state/commands/nodes";
import { showAddSearch } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { inOrder, portOfHandle, startAt, useMovingEdge } from "./handles";

interface Ends {
  source: string;
  target: string;
  sourceHandle?: string | null | undefined;
  targetHandle?: string | null | undefined;
}

const startOf = (ends: Ends): PortRef => ({
  node: ends.source,
  port: portOfHandle(ends.sourceHandle),
});
const endOf = (ends: Ends): PortRef => ({
  node: ends.target,
  port: portOfHandle(ends.targetHandle),
});

export function useConnect() {
  const { catalog, store } = useOpenLoop();
  const { screenToFlowPosition } = useReactFlow();
  return useMemo(() => {
    let isMoved = false;
    return {
      isValidConnection: (ends: Ends) => {
        const { document } = store.getState();
        const { key } = useMovingEdge.getState();
        return canConnect(catalog, document, startOf(ends), endOf(ends), key).ok;
      },
      onConnect: (ends: Ends) => {
        const edge = { from: portText(startOf(ends)), to: portText(endOf(ends)) };
        store.dispatch(connect, { edge });
      },
      onConnectEnd: (event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
        if (state.isValid || !state.fromHandle || useMovingEdge.getState().key !== null) return;
        const start = startAt(state.fromHandle);
        const point = pointOf(event);
        if (!point || state.toHandle) return;
        const over = document.elementFromPoint(point.clientX, point.clientY);
        const box = over?.closest<HTMLElement>(".react-flow__node")?.dataset.id;
        if (box) {
          const { document } = store.getState();
          const kind = catalog.kinds[document.nodes[box]?.kind ?? ""];
          const ports = (start.isOutput ? kind?.inputs : kind?.outputs) ?? [];
          const ends = ports
            .map((port) => inOrder(start, { node: box, port: port.name }))
            .find(([from, to]) => canConnect(catalog, document, from, to).ok);
          if (!ends) return;
          const [from, to] = ends.map(portText) as [string, string];
          store.dispatch(connect, { edge: { from, to } });
        } else if (over?.closest(".react-flow")) {
          const screen = { x: point.clientX, y: point.clientY };
          showAddSearch({ screen, flow: toLoop(screenToFlowPosition(screen)), from: start });
        }
      },
      onReconnectStart: (_: unknown, edge: FlowEdge) => {
        isMoved = false;
        useMovingEdge.setState({ key: edge.id });
      },
      onReconnect: (edge: FlowEdge, ends: Connection) => {
        isMoved = true;
        const [from, to] = [portText(startOf(ends)), portText(endOf(ends))];
        store.dispatch(reconnectEdge, { key: edge.id, from, to });
      },
      onReconnectEnd: (event: MouseEvent | TouchEvent, edge: FlowEdge) => {
        useMovingEdge.setState({ key: null });
        const point = pointOf(event);
        const over = point && document.elementFromPoint(point.clientX, point.clientY);
        if (isMoved || over?.closest(".react-flow__node")) return;
        store.dispatch(removeItems, { nodes: [], edges: [edge.id] }, { label: "Disconnect" });
      },
    };
  }, [catalog, store, screenToFlowPosition]);
}

function pointOf(event: MouseEvent | TouchEvent): MouseEvent | Touch | undefined {
  return "changedTouches" in event ? event.changedTouches[0] : event;
}
