import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useEffect, useRef } from "react";
import { useViewport } from "@/session/viewport";

/** Brings a node into view that a command asks for, once it stands where it was put. */
export function useReveal(): void {
  const wish = useViewport((state) => state.wish);
  const { getNode, getZoom, setCenter, flowToScreenPosition } = useReactFlow();
  const flow = useStoreApi();
  const seen = useRef(wish);
  useEffect(() => {
    if (!wish?.node || seen.current === wish) return;
    const { node: wanted } = wish;
    seen.current = wish;
    const frame = requestAnimationFrame(() => {
      const node = getNode(wanted);
      if (!node) return;
      const { x, y } = node.position;
      const [width, height] = [node.width ?? 0, node.height ?? 0];
      const box = flow.getState().domNode?.getBoundingClientRect();
      const start = flowToScreenPosition({ x, y });
      const end = flowToScreenPosition({ x: x + width, y: y + height });
      const isSeen =
        box &&
        start.x >= box.left &&
        start.y >= box.top &&
        end.x <= box.right &&
        end.y <= box.bottom;
      if (isSeen) return;
      void setCenter(x + width / 2, y + height / 2, { zoom: getZoom(), duration: 200 });
    });
    return () => cancelAnimationFrame(frame);
  }, [wish, getNode, getZoom, setCenter, flowToScreenPosition, flow]);
}
