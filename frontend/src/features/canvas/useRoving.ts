/**
 * The graph is one stop of the Tab key: one box can be tabbed to, arrow keys lead on from there.
 *
 * A selected box that can be moved is moved by the arrows instead, as React Flow does it.
 */
import { type Edge, type Node, useReactFlow } from "@xyflow/react";
import { useCallback } from "react";
import { create } from "zustand";
import { boxTowards, edgeOf, fromEdge, isArrow, type Stop } from "./arrowKeys";

interface Roving {
  /** The box that Tab leads to; null for the first one. */
  node: string | null;
}

const useRovingStore = create<Roving>()(() => ({ node: null }));

/** The box that Tab leads to, among these. */
export function useTabStop(ids: readonly string[]): string | null {
  const node = useRovingStore((state) => state.node);
  return node !== null && ids.includes(node) ? node : (ids[0] ?? null);
}

interface RovingProps {
  onFocusCapture: (event: React.FocusEvent) => void;
  onKeyDownCapture: (event: React.KeyboardEvent) => void;
}

export function useRoving(): RovingProps {
  const { getNodes, getEdges } = useReactFlow();

  const onFocusCapture = useCallback((event: React.FocusEvent) => {
    const stop = stopOf(event.target);
    if (stop?.kind === "node") useRovingStore.setState({ node: stop.id });
  }, []);

  const onKeyDownCapture = useCallback(
    (event: React.KeyboardEvent) => {
      if (!isArrow(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
      const stop = stopOf(event.target);
      if (stop === null) return;
      const nodes = getNodes();
      const edges = getEdges().map(stopEdge);
      if (stop.kind === "edge") {
        go(event, fromEdge(edges, stop.id, event.key));
      } else if (event.shiftKey) {
        go(event, edgeOf(edges, stop.id, event.key));
      } else if (!isMoved(nodes, stop.id)) {
        go(event, boxTowards(nodes.map(stopBox), stop.id, event.key));
      }
    },
    [getNodes, getEdges],
  );

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

function stopEdge({ id, source, target }: Edge) {
  return { key: id, source, target };
}
