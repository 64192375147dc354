import { type ReactFlowState, useReactFlow, useStore } from "@xyflow/react";
import { memo, type RefObject, useEffect, useRef } from "react";
import { useNodeColors } from "@/state/document/context";
import { useMoving } from "./useMoves";

const OVERVIEW = { width: 120, height: 36 };
const AROUND = 5;

/** The whole graph in small, and what the window shows of it. While the graph moves, only that is drawn again. */
export function Overview() {
  const isMoving = useMoving((state) => state.isMoving);
  const held = useRef("");
  const shown = useStore((state) => (isMoving && held.current) || shownOf(state));
  held.current = shown;
  const svg = useOverviewDrag();
  return (
    <div className="canvas-overview ml-auto">
      <svg ref={svg} {...OVERVIEW} viewBox={shown} role="img" aria-label="Overview of the graph">
        <Boxes />
        <Hidden shown={shown} />
      </svg>
    </div>
  );
}

const Boxes = memo(function Boxes() {
  const nodes = useStore((state) => state.nodes);
  const colors = useNodeColors();
  return nodes.map(({ id, position, width, height }) => (
    <rect
      key={id}
      {...position}
      width={width}
      height={height}
      rx={5}
      shapeRendering="crispEdges"
      fill={colors[id] ?? "var(--muted)"}
    />
  ));
});

/** All but the window. */
function Hidden({ shown }: { shown: string }) {
  const seen = useStore(({ transform: [x, y, zoom], width, height }) => {
    const right = width / zoom;
    return `M${-x / zoom},${-y / zoom}h${right}v${height / zoom}h${-right}z`;
  });
  const [x = 0, y = 0, width = 0, height = 0] = shown.split(" ").map(Number);
  const all = `M${x - width},${y - height}h${3 * width}v${3 * height}h${-3 * width}z`;
  return (
    <path className="fill-canvas/70 pointer-events-none" d={`${all}${seen}`} fillRule="evenodd" />
  );
}

/** Boxes and window with something around, in the proportions of the overview. */
function shownOf({ nodes, transform: [x, y, zoom], width, height }: ReactFlowState): string {
  const seen = { x: -x / zoom, y: -y / zoom, width: width / zoom, height: height / zoom };
  const all = [...nodes.map((node) => ({ ...node, ...node.position })), seen];
  const left = Math.min(...all.map((box) => box.x));
  const top = Math.min(...all.map((box) => box.y));
  const across = Math.max(...all.map((box) => box.x + (box.width ?? 0))) - left;
  const down = Math.max(...all.map((box) => box.y + (box.height ?? 0))) - top;
  const scale = Math.max(across / OVERVIEW.width, down / OVERVIEW.height);
  const size = [scale * (OVERVIEW.width + 2 * AROUND), scale * (OVERVIEW.height + 2 * AROUND)];
  const [wide = 0, high = 0] = size;
  return `${left - (wide - across) / 2} ${top - (high - down) / 2} ${wide} ${high}`;
}

/** By how much a turn of the wheel zooms, by what the browser counts in: pixels, lines or pages. */
const ZOOM_BY = [0.002, 0.05, 1];

/** Dragged, the overview moves the window over the graph; the wheel zooms it. */
function useOverviewDrag(): RefObject<SVGSVGElement | null> {
  const svg = useRef<SVGSVGElement>(null);
  const { getViewport, setViewport, getZoom, zoomTo } = useReactFlow();
  useEffect(() => {
    const element = svg.current;
    if (!element) return;
    const take = (event: PointerEvent) =>
      event.button === 0 && element.setPointerCapture(event.pointerId);
    const move = (event: PointerEvent) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      const { x, y, zoom } = getViewport();
      const by = (element.viewBox.baseVal.width / element.clientWidth) * zoom;
      useMoving.setState({ isMoving: true });
      void setViewport({ x: x - event.movementX * by, y: y - event.movementY * by, zoom });
    };
    const rest = () => useMoving.setState({ isMoving: false });
    const turn = (event: WheelEvent) => {
      event.preventDefault();
      void zoomTo(getZoom() * 2 ** (-event.deltaY * (ZOOM_BY[event.deltaMode] ?? 0)));
    };
    element.addEventListener("pointerdown", take);
    element.addEventListener("pointermove", move);
    element.addEventListener("lostpointercapture", rest);
    element.addEventListener("wheel", turn, { passive: false });
    return () => {
      element.removeEventListener("pointerdown", take);
      element.removeEventListener("pointermove", move);
      element.removeEventListener("lostpointercapture", rest);
      element.removeEventListener("wheel", turn);
    };
  }, [getViewport, setViewport, getZoom, zoomTo]);
  return svg;
}
