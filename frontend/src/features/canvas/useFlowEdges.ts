/** The document's edges as React Flow wants them; the same object as long as nothing changes. */
import { type EdgeChange, type Edge as FlowEdge, MarkerType, type Node } from "@xyflow/react";
import { useMemo, useRef } from "react";
import type { Catalog } from "@/api/types";
import { inputPort, outputPort } from "@/document/canConnect";
import { useCatalog, useDocument, useOpenLoop } from "@/document/context";
import { edgeKeys, portRef } from "@/document/edges";
import { edgeText } from "@/document/edgeText";
import { shownPorts } from "@/document/geometry";
import type { LoopDocument } from "@/document/types";
import { useSelection } from "@/session/selection";
import { portColor } from "@/ui/PortMark";
import type { RouteBox } from "./lanes";
import { type Area, extent, type Route, type RouteEdge, routeEdges } from "./routes";
import { nodeShape } from "./useFlowNodes";

interface FlowEdges {
  edges: FlowEdge[];
  onEdgesChange: (changes: EdgeChange[]) => void;
  /** What nodes and edges cover; null without nodes. */
  area: Area | null;
}

/** The longest rate that stands on an edge, e.g. `44.4k/s`. */
const RATE_CHARACTERS = 7;

/** @param scale how much larger than in the layout text is drawn */
export function useFlowEdges(nodes: readonly Node[], scale: number): FlowEdges {
  const catalog = useCatalog();
  const { store, runId } = useOpenLoop();
  const loopEdges = useDocument((state) => state.document.edges);
  const shape = useDocument((state) => nodeShape(state.document));
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.edges);
  const cache = useRef(new Map<string, { mark: string; edge: FlowEdge }>());
  const lastEdges = useRef<FlowEdge[]>([]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the nodes and their ports
  const { routes, area } = useMemo(() => {
    const { document } = store.getState();
    const boxes = nodes.map(boxOf);
    const found = routeEdges(boxes, routeParts(catalog, document, runId !== null), scale);
    return { routes: found, area: boxes.length > 0 ? extent(boxes, found) : null };
  }, [store, loopEdges, shape, nodes, catalog, runId, scale]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the nodes and their ports
  const edges = useMemo(() => {
    const { document } = store.getState();
    const selected = new Set(chosen);
    const keys = edgeKeys(loopEdges);
    const list: FlowEdge[] = [];
    for (const [index, edge] of loopEdges.entries()) {
      const key = keys[index] ?? "";
      const source = portRef(edge.from);
      const target = portRef(edge.to);
      const output = outputPort(catalog, document, source);
      // An edge to a port that does not exist cannot be drawn; the problems list has it.
      if (!output || !inputPort(catalog, document, target)) continue;
      const route = routes.get(key);
      const mark = `${selected.has(key)} ${output.type} ${isReadonly} ${routeMark(route)}`;
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
        data: { route },
        reconnectable: !isReadonly,
        // Reached from its ends.
        domAttributes: { tabIndex: -1 },
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
  }, [store, loopEdges, shape, routes, chosen, catalog, isReadonly]);

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

  return { edges, onEdgesChange, area };
}

function boxOf({ id, position, height }: Node): RouteBox {
  return { id, x: position.x, y: position.y, height: height ?? 0 };
}

export function routeParts(catalog: Catalog, document: LoopDocument, isLive: boolean): RouteEdge[] {
  const keys = edgeKeys(document.edges);
  const rows = new Map<string, number>();
  for (const node of Object.keys(document.nodes)) {
    const { inputs, outputs } = shownPorts(catalog, document, node);
    for (const [row, port] of inputs.entries()) rows.set(`> ${node}.${port.name}`, row);
    for (const [row, port] of outputs.entries()) rows.set(`< ${node}.${port.name}`, row);
  }
  return document.edges.map((edge, index) => ({
    key: keys[index] ?? "",
    source: portRef(edge.from).node,
    target: portRef(edge.to).node,
    sourceRow: rows.get(`< ${edge.from}`) ?? 0,
    targetRow: rows.get(`> ${edge.to}`) ?? 0,
    characters: labelCharacters(edgeText(catalog, edge).length, isLive),
  }));
}

/** Room is kept for a rate before there is one, so that nothing moves when it comes. */
function labelCharacters(text: number, isLive: boolean): number {
  if (!isLive) return text;
  return text > 0 ? text + 3 + RATE_CHARACTERS : RATE_CHARACTERS;
}

function routeMark(route: Route | undefined): string {
  if (!route) return "";
  const { lane, bend, label } = route;
  return `${lane?.y} ${lane?.out} ${lane?.into} ${bend} ${label?.join(" ")}`;
}
