import type { EdgeChange, Edge as FlowEdge, Node } from "@xyflow/react";
import { useCallback, useMemo, useRef } from "react";
import type { Catalog } from "@/api/types";
import { inputPort, outputPort } from "@/document/canConnect";
import { edgeIndex } from "@/document/edges";
import type { LoopDocument } from "@/document/types";
import {
  type CompactEdges,
  compactEdges,
  compactMeasures,
  type Squeeze,
  squeezeBoxes,
} from "@/graph/compact";
import { edgeKinds, edgeLabel } from "@/graph/edgeKinds";
import { foldEdges } from "@/graph/folding";
import { HEADER_HEIGHT, portTop, shownPorts } from "@/graph/geometry";
import { labelWidth } from "@/graph/labels";
import { type Drawn, type Route, type RouteEdge, rerouteEdges, routeEdges } from "@/graph/routes";
import type { Socket } from "@/graph/sockets";
import { formatPlural } from "@/lib/format";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { select, useSelection } from "@/state/selection";
import { useFold } from "@/state/useGroups";
import { boxOf } from "./guides/useDragging";
import { socketHandle } from "./handles";
import { nodeShape } from "./useFlowNodes";

type Bundled = Pick<CompactEdges, "bundles" | "dots">;

const NO_BUNDLES: Bundled = { bundles: new Map(), dots: new Map() };

/** @param isDragging whether boxes are under the pointer: then only their edges are routed anew */
export function useFlowEdges(nodes: readonly Node[], squeeze: Squeeze | null, isDragging: boolean) {
  const catalog = useCatalog();
  const { store, runId } = useOpenLoop();
  const loopEdges = useDocument((state) => state.document.edges);
  const shape = useDocument((state) => nodeShape(catalog, state.document));
  const fold = useFold();
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.edges);
  const cache = useRef(new Map<string, { mark: string; edge: FlowEdge }>());
  const lastEdges = useRef<FlowEdge[]>([]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the nodes and their ports
  const parts = useMemo(
    () => foldEdges(routeParts(catalog, store.getState().document, runId !== null), fold),
    [store, loopEdges, shape, catalog, runId, fold],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: `loopEdges` are what is read of the document
  const words = useMemo(() => {
    const { document } = store.getState();
    return (key: string) => {
      const edge = document.edges[edgeIndex(document, key)];
      return edge ? edgeLabel(catalog, edge, "learning") : "";
    };
  }, [store, loopEdges, catalog]);
  const boxes = useMemo(() => nodes.map((node) => boxOf(node)), [nodes]);
  const drawWith = useCallback(
    (by: Squeeze | null): Drawn & Bundled => {
      if (by === null) {
        return { ...NO_BUNDLES, boxes, edges: parts, drawing: routeEdges(boxes, parts) };
      }
      const cards = squeezeBoxes(boxes, by);
      const compact = compactEdges(parts, cards, by, words);
      const measures = compactMeasures(by);
      return {
        ...compact,
        boxes: cards,
        measures,
        drawing: routeEdges(cards, compact.edges, measures),
      };
    },
    [boxes, parts, words],
  );
  const draw = useCallback((by: Squeeze | null) => drawWith(by).drawing, [drawWith]);
  const settled = useRef<{ of: unknown[]; drawn: Drawn & Bundled } | null>(null);
  const { drawing, bundles, dots } = useMemo(() => {
    const of = [parts, words, squeeze];
    const before = settled.current;
    if (isDragging && before?.of.every((value, index) => value === of[index])) {
      const now = squeeze ? squeezeBoxes(boxes, squeeze) : boxes;
      return { ...before.drawn, drawing: rerouteEdges(before.drawn, now) };
    }
    const drawn = drawWith(squeeze);
    settled.current = { of, drawn };
    return drawn;
  }, [drawWith, squeeze, isDragging, boxes, parts, words]);
  const { routes, sockets } = drawing;

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the nodes and their ports
  const edges = useMemo(() => {
    const { document } = store.getState();
    const selected = new Set(chosen);
    const list: FlowEdge[] = [];
    const drawn = new Map(parts.map((part) => [part.key, part]));
    for (const { key, edge, from, to } of edgeKinds(catalog, document).edges) {
      const output = outputPort(catalog, document, from);
      const part = drawn.get(key);
      // An edge to a port that does not exist cannot be drawn; the problems list has it.
      if (!output || !inputPort(catalog, document, to) || !part) continue;
      const source = { node: part.source, port: part.sourcePort };
      const target = { node: part.target, port: part.targetPort };
      const route = routes.get(key);
      const bundle = bundles.get(key);
      if (squeeze && !route) continue;
      const isSelected = (bundle ?? [key]).some((one) => selected.has(one));
      const handles = [handleOf(sockets, key, source), handleOf(sockets, key, target)];
      const mark = `${isSelected} ${bundle} ${output.type} ${isReadonly} ${handles} ${routeMark(route)}`;
      const old = cache.current.get(key);
      if (old?.mark === mark) {
        list.push(old.edge);
        continue;
      }
      const made: FlowEdge = {
        id: key,
        type: "loop",
        source: source.node,
        sourceHandle: handles[0] ?? source.port,
        target: target.node,
        targetHandle: handles[1] ?? target.port,
        selected: isSelected,
        data: { route, ...(bundle ? { bundle } : {}) },
        reconnectable:
          !isReadonly && !bundle && source.node === from.node && target.node === to.node,
        domAttributes: { tabIndex: -1 },
        ariaLabel: bundle
          ? `${formatPlural(bundle.length, "edge")} from ${source.node} to ${target.node}`
          : `${edge.from} to ${edge.to}`,
      };
      cache.current.set(key, { mark, edge: made });
      list.push(made);
    }
    const before = lastEdges.current;
    const isSame =
      before.length === list.length && list.every((edge, index) => edge === before[index]);
    if (!isSame) lastEdges.current = list;
    return lastEdges.current;
  }, [
    store,
    loopEdges,
    shape,
    parts,
    routes,
    sockets,
    bundles,
    squeeze,
    chosen,
    catalog,
    isReadonly,
  ]);

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
    select({ nodes: useSelection.getState().nodes, edges: [...choice] });
  };

  return { edges, onEdgesChange, boxes, drawing, dots, draw };
}

function handleOf(
  sockets: ReadonlyMap<string, readonly Socket[]>,
  key: string,
  { node, port }: { node: string; port: string },
): string {
  const socket = sockets.get(node)?.find((one) => one.key === key && one.port === port);
  return socket ? socketHandle(port, key) : port;
}

export function routeParts(catalog: Catalog, document: LoopDocument, isLive: boolean): RouteEdge[] {
  const { edges, leaderOf } = edgeKinds(catalog, document);
  const tops = new Map<string, number>();
  for (const node of Object.keys(document.nodes)) {
    const { inputs, outputs } = shownPorts(catalog, document, node);
    for (const [row, port] of inputs.entries()) tops.set(`> ${node}.${port.name}`, portTop(row));
    for (const [row, port] of outputs.entries()) tops.set(`< ${node}.${port.name}`, portTop(row));
  }
  return edges.map(({ key, edge, from, to, kind }) => {
    const follower = [from.node, to.node].find(
      (node, at, ends) => leaderOf.get(node) === ends[1 - at],
    );
    return {
      key,
      source: from.node,
      target: to.node,
      sourcePort: from.port,
      targetPort: to.port,
      kind,
      follower: kind === "tie" ? (follower ?? null) : null,
      sourceTop: tops.get(`< ${edge.from}`) ?? HEADER_HEIGHT / 2,
      targetTop: tops.get(`> ${edge.to}`) ?? HEADER_HEIGHT / 2,
      label: labelWidth(edgeLabel(catalog, edge, kind), kind, isLive),
    };
  });
}

function routeMark(route: Route | undefined): string {
  return route ? `${route.kind} ${route.path} ${route.label?.join(" ")}` : "";
}
