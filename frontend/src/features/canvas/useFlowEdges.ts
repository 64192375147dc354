/** The document's edges as React Flow wants them; the same object as long as nothing changes. */
import { type EdgeChange, type Edge as FlowEdge, MarkerType, type Node } from "@xyflow/react";
import { useMemo, useRef } from "react";
import { inputPort, outputPort } from "@/document/canConnect";
import { useCatalog, useDocument, useOpenLoop } from "@/document/context";
import { edgeKeys, portRef } from "@/document/edges";
import { useSelection } from "@/session/selection";
import { portColor } from "@/ui/PortMark";
import { createLanes } from "./lane";
import { nodeShape } from "./useFlowNodes";

interface FlowEdges {
  edges: FlowEdge[];
  onEdgesChange: (changes: EdgeChange[]) => void;
}

/** Backward edges run below the boxes in between; their lane moves with those. */
export function useFlowEdges(nodes: readonly Node[]): FlowEdges {
  const catalog = useCatalog();
  const { store } = useOpenLoop();
  const loopEdges = useDocument((state) => state.document.edges);
  const shape = useDocument((state) => nodeShape(state.document));
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.edges);
  const cache = useRef(new Map<string, { mark: string; edge: FlowEdge }>());
  const lastEdges = useRef<FlowEdge[]>([]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the nodes and their ports
  const edges = useMemo(() => {
    const { document } = store.getState();
    const selected = new Set(chosen);
    const keys = edgeKeys(loopEdges);
    const list: FlowEdge[] = [];
    const lanes = createLanes(nodes);
    for (const [index, edge] of loopEdges.entries()) {
      const key = keys[index] ?? "";
      const source = portRef(edge.from);
      const target = portRef(edge.to);
      const output = outputPort(catalog, document, source);
      // An edge to a port that does not exist cannot be drawn; the problems list has it.
      if (!output || !inputPort(catalog, document, target)) continue;
      const laneY = lanes.below(source.node, target.node);
      const mark = `${selected.has(key)} ${output.type} ${isReadonly} ${laneY}`;
      const old = cache.current.get(key);
      if (old?.mark === mark) {
        list.push(old.edge);
        continue;
      }
      const made: FlowEdge = {
        id: key,
        type: "loop",
        source: source.node,
        sourceHandle: source.port,
        target: target.node,
        targetHandle: target.port,
        selected: selected.has(key),
        data: { laneY },
        reconnectable: !isReadonly,
        markerEnd: {
          type: MarkerType.ArrowClosed,
          markerUnits: "userSpaceOnUse",
          width: 18,
          height: 18,
          color: portColor(catalog.port_types[output.type]?.color),
        },
        ariaLabel: `${edge.from} to ${edge.to}`,
      };
      cache.current.set(key, { mark, edge: made });
      list.push(made);
    }
    const before = lastEdges.current;
    const isSame =
      before.length === list.length && list.every((edge, index) => edge === before[index]);
    if (!isSame) lastEdges.current = list;
    return lastEdges.current;
  }, [store, loopEdges, shape, nodes, chosen, catalog, isReadonly]);

  const onEdgesChange = (changes: EdgeChange[]) => {
    const choice = new Set(useSelection.getState().edges);
    let changed = false;
    for (const change of changes) {
      if (change.type !== "select") continue;
      changed = true;
      if (change.selected) choice.add(change.id);
      else choice.delete(change.id);
    }
    if (!changed) return;
    useSelection.getState().select({ nodes: useSelection.getState().nodes, edges: [...choice] });
  };

  return { edges, onEdgesChange };
}
