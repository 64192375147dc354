/**
 * The document's nodes as React Flow wants them. React Flow is a view: places under the pointer are local
 * until the drag ends, everything else comes from the document and the selection.
 */
import type { Node, NodeChange } from "@xyflow/react";
import { useMemo, useRef, useState } from "react";
import type { Catalog } from "@/api/types";
import type { LoopDocument, Point } from "@/document/types";
import { kindOf, nodeSize, type Size } from "@/graph/geometry";
import { placeNodes } from "@/graph/layout";
import { toLoop, useDetail } from "@/state/canvas";
import { moveNodes } from "@/state/commands/nodes";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { select, useSelection } from "@/state/selection";
import { useFold, useFoldedDocument } from "@/state/useGroups";
import { useTabStop } from "./useRoving";

interface Dragging {
  snap: (changes: NodeChange[], nodes: readonly Node[]) => NodeChange[];
  drop: (positions: Record<string, Point>, moved: readonly string[]) => boolean;
}

export function useFlowNodes({ snap, drop }: Dragging) {
  const { catalog, store } = useOpenLoop();
  const layout = useDocument((state) => state.document.layout);
  const edges = useDocument((state) => state.document.edges);
  // Values inside nodes do not move boxes; only which nodes, edges and places there are, and how many values they show.
  const shape = useDocument((state) => nodeShape(catalog, state.document));
  const isReadonly = useDocument((state) => state.isReadonly);
  const { dispatch } = useOpenLoop().store;
  const chosen = useSelection((state) => state.nodes);
  const [dragged, setDragged] = useState<Record<string, Point>>({});
  const draggedNow = useRef(dragged);
  const measured = useRef(new Map<string, { width: number; height: number }>());
  const cache = useRef(new Map<string, { mark: string; node: Node }>());

  const fold = useFold();
  const read = useFoldedDocument();
  const ids = useMemo(() => {
    const all = shape === "" ? [] : shape.split(",").map((part) => part.split(":")[0] ?? "");
    return [...all.filter((id) => !fold.cardOf.has(id)), ...fold.cards.map(({ id }) => id)];
  }, [shape, fold]);
  const tabStop = useTabStop(ids);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the nodes
  const places = useMemo(
    () => placeNodes(catalog, read()),
    [catalog, read, fold, shape, layout, edges],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: `edges` decide how many ports a node shows
  const nodes = useMemo(() => {
    const selected = new Set(chosen.map((id) => fold.cardOf.get(id) ?? id));
    const cards = new Map(fold.cards.map((card) => [card.id, card]));
    const list: Node[] = [];
    for (const id of ids) {
      const [x, y] = dragged[id] ?? places[id] ?? [0, 0];
      const data = store.getState().document.nodes[id];
      const kind = kindOf(catalog, data?.kind);
      const card = cards.get(id);
      const ariaLabel = card
        ? `${card.name}, group of ${card.members.length}`
        : `${id}, ${kind?.title ?? data?.kind ?? ""}`;
      const size: Size = card ?? nodeSize(catalog, store.getState().document, id);
      const { width, height } = size;
      const isSelected = selected.has(id);
      const tabIndex = id === tabStop ? 0 : -1;
      const mark = `${[x, y, width, height, isSelected, isReadonly, tabIndex]} ${ariaLabel}`;
      const old = cache.current.get(id);
      if (old?.mark === mark) {
        list.push(old.node);
        continue;
      }
      const node: Node = {
        id,
        type: card ? "group" : "loop",
        position: { x, y },
        selected: isSelected,
        data: {},
        ariaLabel,
        width,
        height,
        draggable: !isReadonly,
        domAttributes: { tabIndex },
        ...(measured.current.has(id)
          ? { measured: measured.current.get(id) as { width: number; height: number } }
          : {}),
      };
      cache.current.set(id, { mark, node });
      list.push(node);
    }
    return list;
  }, [ids, tabStop, edges, places, dragged, chosen, catalog, store, isReadonly, fold]);

  const membersAt = (id: string) => fold.cards.find((card) => card.id === id)?.members ?? [id];

  /** A closed group goes with all that is in it. */
  const ofNodes = (moved: Record<string, Point>): Record<string, Point> => {
    if (fold.cards.length === 0) return moved;
    return Object.fromEntries(
      Object.entries(moved).flatMap(([id, [x, y]]): [string, Point][] => {
        if (fold.cards.every((card) => card.id !== id)) return [[id, [x, y]]];
        const [left, top] = places[id] ?? [x, y];
        return membersAt(id).map((member) => {
          const [across, down] = places[member] ?? [left, top];
          return [member, [across + x - left, down + y - top]];
        });
      }),
    );
  };

  const onNodesChange = (wanted: NodeChange[]) => {
    const changes = snap(wanted.map(inLoop), nodes);
    const moved: Record<string, Point> = {};
    let isDragging = false;
    let choice: Set<string> | null = null;
    for (const change of changes) {
      if (change.type === "position" && change.position) {
        moved[change.id] = [Math.round(change.position.x), Math.round(change.position.y)];
        isDragging ||= change.dragging === true;
      } else if (
        change.type === "dimensions" &&
        change.dimensions &&
        useDetail.getState().squeeze === null
      ) {
        measured.current.set(change.id, change.dimensions);
      } else if (change.type === "select") {
        choice ??= new Set(useSelection.getState().nodes);
        for (const id of membersAt(change.id)) {
          if (change.selected) choice.add(id);
          else choice.delete(id);
        }
      }
    }
    if (choice) {
      const { edges: chosenEdges } = useSelection.getState();
      select({ nodes: [...choice], edges: chosenEdges });
    }
    if (Object.keys(moved).length === 0) return;
    if (isDragging || Object.keys(draggedNow.current).length > 0) {
      draggedNow.current = { ...draggedNow.current, ...moved };
      setDragged(draggedNow.current);
    } else {
      dispatch(moveNodes, { positions: withShown(ofNodes(moved)) }, { group: "nudge" });
    }
  };

  /** Places that were only found for the screen become the loop's own with the first move. */
  const withShown = (moved: Record<string, Point>) =>
    Object.keys(layout).length < Object.keys(places).length ? { ...places, ...moved } : moved;

  const onDragStop = () => {
    const moved = draggedNow.current;
    draggedNow.current = {};
    const positions = withShown(ofNodes(moved));
    const ids = Object.keys(moved);
    if (ids.length > 0 && !drop(positions, ids)) dispatch(moveNodes, { positions });
    setDragged({});
  };

  const isDragging = Object.keys(dragged).length > 0;
  return { nodes, isDragging, onNodesChange, onDragStop };
}

function inLoop(change: NodeChange): NodeChange {
  if (change.type !== "position" || !change.position) return change;
  return { ...change, position: toLoop(change.position) };
}

/** Which nodes there are, of which kinds and how large, as one comparable text. */
export function nodeShape(catalog: Catalog, document: LoopDocument): string {
  let shape = "";
  for (const [id, node] of Object.entries(document.nodes)) {
    const { width, height } = nodeSize(catalog, document, id);
    shape += `${shape === "" ? "" : ","}${id}:${node.kind}:${width}:${height}`;
  }
  return shape;
}
