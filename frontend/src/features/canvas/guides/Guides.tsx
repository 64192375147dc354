import { useStore, ViewportPortal } from "@xyflow/react";
import { useEffect } from "react";
import { useDetail } from "@/session/detail";
import { useDropTarget } from "@/session/dropTarget";

/** Lines through the boxes that a dragged one stands in line with, and a mark on the edge that it would be inserted in. */
export function Guides() {
  const guides = useDropTarget((state) => state.guides);
  const edge = useDropTarget((state) => state.edge);
  const by = useDetail((state) => state.squeeze) ?? { x: 1, y: 1 };
  const zoom = useStore((state) => state.transform[2]);
  useEffect(() => {
    const found =
      edge && document.querySelector(`.react-flow__edge[data-id="${CSS.escape(edge)}"]`);
    if (!found) return;
    found.setAttribute("data-target", "");
    return () => found.removeAttribute("data-target");
  }, [edge]);
  if (guides.length === 0) return null;
  return (
    <ViewportPortal>
      <svg className="canvas-guides" aria-hidden="true" role="presentation">
        {guides.map(({ axis, at, from, to }) => (
          <line
            key={`${axis} ${at}`}
            strokeWidth={1 / zoom}
            {...(axis === "x"
              ? { x1: at * by.x, x2: at * by.x, y1: from * by.y, y2: to * by.y }
              : { x1: from * by.x, x2: to * by.x, y1: at * by.y, y2: at * by.y })}
          />
        ))}
      </svg>
    </ViewportPortal>
  );
}
