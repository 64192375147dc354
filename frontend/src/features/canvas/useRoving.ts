/**
 * The graph is one stop of the Tab key: one box can be tabbed to, arrow keys lead on from there.
 *
 * A selected box that can be moved is moved by the arrows instead, as React Flow does it.
 */
import { type Edge, type Node, useReactFlow } from "@xyflow/react";
import { create } from "zustand";

const useRovingStore = create<{ node: string | null }>()(() => ({ node: null }));

export function useTabStop(ids: readonly string[]): string | null {
  const node = useRovingStore((state) => state.node);
  return node !== null && ids.includes(node) ? node : (ids[0] ?? null);
}

export function useRoving() {
  const { getNodes, getEdges } = useReactFlow();
  const onFocusCapture = (event: React.FocusEvent) => {
    const stop = stopOf(event.target);
    if (stop?.kind === "node") useRovingStore.setState({ node: stop.id });
  };
  const onKeyDownCapture = (event: React.KeyboardEvent) => {
    if (!isArrow(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    const stop = stopOf(event.target);
    if (stop === null) return;
    const nodes = getNodes();
    if (stop.kind === "edge") {
      go(event, fromEdge(getEdges(), stop.id, event.key));
    } else if (event.shiftKey) {
      go(event, edgeOf(getEdges(), stop.id, event.key));
    } else if (!isMoved(nodes, stop.id)) {
      go(event, boxTowards(nodes.map(stopBox), stop.id, event.key));
    }
  };
  return { onFocusCapture, onKeyDownCapture };
}

/** The box or edge that has the focus itself; what lies inside of it is its own. */
function stopOf(target: EventTarget): Stop | null {
  if (!(target instanceof Element)) return null;
  const id = target.getAttribute("data-id");
  if (id === null) return null;
  if (target.classList.contains("react-flow__node")) return { kind: "node", id };
  return target.classList.contains("react-flow__edge") ? { kind: "edge", id } : null;
}

function isMoved(nodes: readonly Node[], id: string): boolean {
  const node = nodes.find((one) => one.id === id);
  return node?.selected === true && node.draggable === true;
}

function go(event: React.KeyboardEvent, to: Stop | null): void {
  event.preventDefault();
  event.stopPropagation();
  if (to === null) return;
  const found = event.currentTarget.querySelector(
    `.react-flow__${to.kind}[data-id="${CSS.escape(to.id)}"]`,
  );
  if (found instanceof HTMLElement || found instanceof SVGElement) found.focus();
}

function stopBox({ id, position, width, height }: Node) {
  return { id, x: position.x + (width ?? 0) / 2, y: position.y + (height ?? 0) / 2 };
}

interface StopBox {
  id: string;
  x: number;
  y: number;
}

type StopEdge = Pick<Edge, "id" | "source" | "target">;

interface Stop {
  kind: "node" | "edge";
  id: string;
}

type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

const WAYS: Record<Arrow, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** A box to the side counts as far away as one twice as far ahead. */
const ASIDE = 2;

function isArrow(key: string): key is Arrow {
  return key in WAYS;
}

export function boxTowards(boxes: readonly StopBox[], from: string, arrow: Arrow): Stop | null {
  const start = boxes.find(({ id }) => id === from);
  if (!start) return null;
  const [wayX, wayY] = WAYS[arrow];
  let nearest: { id: string; far: number } | null = null;
  for (const { id, x, y } of boxes) {
    const ahead = (x - start.x) * wayX + (y - start.y) * wayY;
    const aside = Math.abs((x - start.x) * wayY) + Math.abs((y - start.y) * wayX);
    const far = ahead + ASIDE * aside;
    if (ahead > 0 && (nearest === null || far < nearest.far)) nearest = { id, far };
  }
  return nearest && { kind: "node", id: nearest.id };
}

/** From a box to its first edge: those that leave lie to the right, those that come in to the left. */
export function edgeOf(edges: readonly StopEdge[], node: string, arrow: Arrow): Stop | null {
  const end = arrow === "ArrowRight" ? "source" : arrow === "ArrowLeft" ? "target" : null;
  const found = end && edges.find((edge) => edge[end] === node);
  return found ? { kind: "edge", id: found.id } : null;
}

/** From an edge on: left and right to its ends, up and down over all edges that share one of them. */
export function fromEdge(edges: readonly StopEdge[], id: string, arrow: Arrow): Stop | null {
  const edge = edges.find((one) => one.id === id);
  if (!edge) return null;
  if (arrow === "ArrowLeft") return { kind: "node", id: edge.source };
  if (arrow === "ArrowRight") return { kind: "node", id: edge.target };
  const near = edges.filter(
    ({ source, target }) => source === edge.source || target === edge.target,
  );
  const next = near[near.indexOf(edge) + (arrow === "ArrowDown" ? 1 : -1)];
  return next ? { kind: "edge", id: next.id } : null;
}
