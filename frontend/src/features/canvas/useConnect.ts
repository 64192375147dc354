/** Drawing edges: onto a port, onto a box, onto empty canvas (asks what to add), and moving an end. */

import {
  type Connection,
  type FinalConnectionState,
  type Edge as FlowEdge,
  useReactFlow,
} from "@xyflow/react";
import { useCallback, useRef } from "react";
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
  const isMoved = useRef(false);

  const isValidConnection = useCallback(
    (ends: Ends) => {
      const { document } = store.getState();
      const { key } = useMovingEdge.getState();
      return canConnect(catalog, document, startOf(ends), endOf(ends), key).ok;
    },
    [catalog, store],
  );

  const onConnect = useCallback(
    (ends: Ends) => {
      const edge = { from: portText(startOf(ends)), to: portText(endOf(ends)) };
      store.dispatch(connect, { edge });
    },
    [store],
  );

  const onConnectEnd = useCallback(
    (event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
      if (state.isValid || !state.fromHandle || useMovingEdge.getState().key !== null) return;
      const start = startAt(state.fromHandle);
      const point = "changedTouches" in event ? event.changedTouches[0] : event;
      if (!point || state.toHandle) return;
      const over = window.document.elementFromPoint(point.clientX, point.clientY);
      const box = over?.closest<HTMLElement>(".react-flow__node")?.dataset.id;
      if (box) {
        const { document } = store.getState();
        const kind = catalog.kinds[document.nodes[box]?.kind ?? ""];
        const ports = (start.isOutput ? kind?.inputs : kind?.outputs) ?? [];
        const ends = ports
          .map((port) => inOrder(start, { node: box, port: port.name }))
          .find(([from, to]) => canConnect(catalog, document, from, to).ok);
        if (ends) {
          const [from, to] = ends;
          store.dispatch(connect, { edge: { from: portText(from), to: portText(to) } });
        }
        return;
      }
      if (!over?.closest(".react-flow")) return;
      const screen = { x: point.clientX, y: point.clientY };
      showAddSearch({ screen, flow: toLoop(screenToFlowPosition(screen)), from: start });
    },
    [catalog, store, screenToFlowPosition],
  );

  const onReconnectStart = useCallback((_: unknown, edge: FlowEdge) => {
    isMoved.current = false;
    useMovingEdge.setState({ key: edge.id });
  }, []);

  const onReconnect = useCallback(
    (edge: FlowEdge, ends: Connection) => {
      isMoved.current = true;
      const [from, to] = [portText(startOf(ends)), portText(endOf(ends))];
      store.dispatch(reconnectEdge, { key: edge.id, from, to });
    },
    [store],
  );

  const onReconnectEnd = useCallback(
    (event: MouseEvent | TouchEvent, edge: FlowEdge) => {
      useMovingEdge.setState({ key: null });
      const point = "changedTouches" in event ? event.changedTouches[0] : event;
      const over = point ? window.document.elementFromPoint(point.clientX, point.clientY) : null;
      if (isMoved.current || over?.closest(".react-flow__node")) return;
      store.dispatch(removeItems, { nodes: [], edges: [edge.id] }, { label: "Disconnect" });
    },
    [store],
  );

  return {
    isValidConnection,
    onConnect,
    onConnectEnd,
    onReconnectStart,
    onReconnect,
    onReconnectEnd,
  };
}
