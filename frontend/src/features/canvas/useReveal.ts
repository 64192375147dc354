import { type ReactFlowState, useReactFlow, useStoreApi } from "@xyflow/react";
import { useEffect, useRef } from "react";
import type { Area } from "@/graph/shapes";
import { useDetail, useViewport } from "@/state/canvas";
import { useSelection } from "@/state/selection";
import { useFold } from "@/state/useGroups";
import { broughtIntoSight } from "./fit";

const MILLISECONDS = 200;
const MIN_ZOOM = 0.8;

/** Brings a node into sight that a command or a problem asks for, once it stands where it was put. */
export function useReveal(): void {
  const wish = useViewport((state) => state.wish);
  const focus = useSelection((state) => state.focus);
  const { setViewport, setCenter } = useReactFlow();
  const flow = useStoreApi();
  const { cardOf } = useFold();
  const seen = useRef<unknown[]>([wish, focus?.request]);
  const pending = useRef(0);
  useEffect(() => {
    const [lastWish, lastRequest] = seen.current;
    const isAsked = wish !== lastWish && wish?.node;
    const isFocused = focus?.request !== lastRequest && focus?.node;
    seen.current = [wish, focus?.request];
    const wanted = isAsked || isFocused;
    if (!wanted) return;
    cancelAnimationFrame(pending.current);
    pending.current = requestAnimationFrame(() => {
      const state = flow.getState();
      const area = areaOfNode(state, cardOf.get(wanted) ?? wanted);
      if (!area) return;
      const [x, y, zoom] = state.transform;
      // A compact card is read at any zoom, and its settings stand beside the graph.
      if (isFocused && zoom < MIN_ZOOM && useDetail.getState().squeeze === null) {
        const [middle, level] = [(area.left + area.right) / 2, (area.top + area.bottom) / 2];
        void setCenter(middle, level, { zoom: MIN_ZOOM, duration: MILLISECONDS });
        return;
      }
      const view = { x, y, zoom };
      const next = broughtIntoSight(view, area, state.width, state.height);
      if (next !== view) void setViewport(next, { duration: MILLISECONDS });
    });
  }, [wish, focus, setViewport, setCenter, flow, cardOf]);
  useEffect(() => () => cancelAnimationFrame(pending.current), []);
}

export function areaOfNode({ nodeLookup }: ReactFlowState, id: string): Area | null {
  const node = nodeLookup.get(id);
  if (!node) return null;
  const { x, y } = node.position;
  return { left: x, top: y, right: x + (node.width ?? 0), bottom: y + (node.height ?? 0) };
}
