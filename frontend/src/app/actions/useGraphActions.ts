import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useMemo } from "react";
import { edgeIndex, edgeKeys, portRef } from "@/document/edges";
import { formatPlural } from "@/lib/format";
import type { Action } from "@/state/actions";
import { toLoop, useEdgeCutter } from "@/state/canvas";
import { removeItems } from "@/state/commands/nodes";
import { showAddSearch } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { useAddNote } from "@/state/useAddNode";

export function useGraphActions(): Action[] {
  const { store } = useOpenLoop();
  const { screenToFlowPosition } = useReactFlow();
  const flowStore = useStoreApi();
  const addNote = useAddNote();

  return useMemo(() => {
    const canEdit = () => !store.getState().isReadonly;
    const middle = () => {
      const box = flowStore.getState().domNode?.getBoundingClientRect();
      return {
        x: (box?.left ?? 0) + (box?.width ?? 0) / 2,
        y: (box?.top ?? 0) + (box?.height ?? 0) / 3,
      };
    };
    const edgesOf = (nodes: readonly string[]) => {
      const { edges } = store.getState().document;
      const keys = edgeKeys(edges);
      const isOf = (end: string) => nodes.includes(portRef(end).node);
      return keys.filter((_, at) => isOf(edges[at]?.from ?? "") || isOf(edges[at]?.to ?? ""));
    };
    const chosenEdge = () => {
      const { nodes, edges } = useSelection.getState();
      return edges.length === 1 && nodes.length === 0 ? edges[0] : undefined;
    };
    return [
      {
        id: "insert",
        label: "Insert a node in the connection",
        keys: ["i"],
        section: "Edit",
        isEnabled: () => canEdit() && chosenEdge() !== undefined,
        run: () => {
          const edge = chosenEdge();
          const found = document.querySelector(
            `.react-flow__edge[data-id="${CSS.escape(edge ?? "")}"] .loop-edge`,
          );
          const line = found?.getBoundingClientRect();
          const screen = line
            ? { x: line.x + line.width / 2, y: line.y + line.height / 2 }
            : middle();
          const isThere = edge && edgeIndex(store.getState().document, edge) >= 0;
          if (!isThere) return;
          showAddSearch({ screen, flow: toLoop(screenToFlowPosition(screen)), edge });
        },
      },
      {
        id: "disconnect",
        label: "Cut all connections of the selection",
        keys: ["x"],
        section: "Edit",
        isEnabled: () => canEdit() && edgesOf(useSelection.getState().nodes).length > 0,
        run: () => {
          const edges = edgesOf(useSelection.getState().nodes);
          const label = `Cut ${formatPlural(edges.length, "connection")}`;
          store.dispatch(removeItems, { nodes: [], edges }, { label });
        },
      },
      {
        id: "cutEdges",
        label: "Cut connections by dragging across them",
        keys: ["k"],
        section: "Edit",
        isEnabled: canEdit,
        run: () => useEdgeCutter.setState({ isOn: true }),
      },
      {
        id: "note",
        label: "Add a note",
        keys: ["n"],
        section: "Edit",
        isEnabled: canEdit,
        run: () => addNote(toLoop(screenToFlowPosition(middle()))),
      },
    ];
  }, [store, screenToFlowPosition, flowStore, addNote]);
}
