import { type ReactFlowState, useReactFlow, useStore } from "@xyflow/react";
import {
  Grid3x3,
  type LucideIcon,
  Map as MapIcon,
  Maximize,
  Minus,
  Network,
  Plus,
} from "lucide-react";
import { memo, type RefObject, useEffect, useRef } from "react";
import { outputPort } from "@/document/canConnect";
import { portRef } from "@/document/edges";
import type { Area } from "@/graph/shapes";
import { formatName } from "@/lib/format";
import { useDetail } from "@/state/canvas";
import { useDocument, useNodeColors, useOpenLoop } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { useArrange } from "@/state/useArrange";
import { IconButton, type IconButtonProps } from "@/ui/IconButton";
import { PortMark } from "@/ui/PortMark";
import { isInSight } from "./fit";
import { useMoving } from "./useMoves";

/** Tools, signs and overview float over the canvas' lower edge; what is brought into sight stays above. */
const GROUP = "pointer-events-auto rounded-2 border border-line bg-surface shadow-1";

interface ControlsProps {
  onFit: () => void;
  onTouch: () => void;
}

interface CanvasToolsProps extends ControlsProps {
  area: Area | null;
}

export function CanvasTools({ area, ...controls }: CanvasToolsProps) {
  const hasMinimap = usePreferences((state) => state.hasMinimap);
  const isMoving = useMoving((state) => state.isMoving);
  const held = useRef(true);
  const isWhole = useStore(({ transform: [x, y, zoom], width, height }) =>
    isMoving || area === null || width === 0
      ? held.current
      : isInSight({ x, y, zoom }, area, width, height),
  );
  held.current = isWhole;
  return (
    <div className="canvas-tools pointer-events-none absolute right-3 bottom-4.5 left-3 flex items-end gap-3">
      <CanvasControls {...controls} />
      {hasMinimap || !isWhole ? <Overview /> : <PortLegend />}
    </div>
  );
}

function CanvasControls({ onFit, onTouch }: ControlsProps) {
  const { zoomIn, zoomOut } = useReactFlow();
  const hasMinimap = usePreferences((state) => state.hasMinimap);
  const snaps = usePreferences((state) => state.snapsToGrid);
  const isReadonly = useDocument((state) => state.isReadonly);
  const { arrange } = useArrange();
  const zoom = (by: typeof zoomIn) => () => {
    onTouch();
    void by({ duration: 120 });
  };
  const tool = (Icon: LucideIcon, props: Omit<IconButtonProps, "icon">) => (
    <IconButton side="top" size="small" icon={<Icon size={15} />} {...props} />
  );
  const line = <span className="h-4.5 mx-1.5 border-l border-line" />;
  const toggleMap = () => setPreferences({ hasMinimap: !hasMinimap });
  const toggleGrid = () => setPreferences({ snapsToGrid: !snaps });
  return (
    <div
      role="toolbar"
      aria-label="Canvas"
      className={`${GROUP} flex flex-none items-center px-1 py-0.5`}
    >
      {tool(Minus, { label: "Zoom out", keys: "-", onClick: zoom(zoomOut) })}
      <Zoom />
      {tool(Plus, { label: "Zoom in", keys: "+", onClick: zoom(zoomIn) })}
      {line}
      {tool(Maximize, { label: "Show everything", keys: "1", onClick: onFit })}
      {tool(Network, { label: "Arrange", keys: "L", disabled: isReadonly, onClick: arrange })}
      {line}
      {tool(Grid3x3, { label: "Snap to grid", isActive: snaps, onClick: toggleGrid })}
      {tool(MapIcon, { label: "Overview", keys: "M", isActive: hasMinimap, onClick: toggleMap })}
    </div>
  );
}

function Zoom() {
  const stretch = useDetail(({ squeeze }) => (squeeze ? Math.max(squeeze.x, squeeze.y) : 1));
  const percent = useStore((state) => Math.round(state.transform[2] * stretch * 100));
  return <span className="tabular w-11 text-center text-muted text-xs">{percent} %</span>;
}

const MAX = 5;

function PortLegend() {
  const { catalog } = useOpenLoop();
  const types = useDocument(({ document }) => {
    const used = document.edges.map(
      (edge) => outputPort(catalog, document, portRef(edge.from))?.type,
    );
    return [...new Set(used)].filter(Boolean).slice(0, MAX).join(" ");
  });
  if (types === "") return null;
  return (
    <div
      role="group"
      aria-label="What the symbols mean"
      className={`${GROUP} ml-auto flex max-h-7.5 flex-wrap gap-x-3.5 gap-y-0 overflow-hidden px-2.5 py-1 text-muted text-xs/5`}
    >
      {types.split(" ").map((name) => (
        <span
          key={name}
          title={catalog.port_types[name]?.help}
          className="inline-flex items-center gap-[5px] whitespace-nowrap"
        >
          <PortMark type={catalog.port_types[name]} size={10} />
          {formatName(name)}
        </span>
      ))}
    </div>
  );
}

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
    <svg
      ref={svg}
      {...OVERVIEW}
      viewBox={shown}
      role="img"
      aria-label="Overview of the graph"
      className="pointer-events-auto ml-auto touch-none rounded-1 border border-line bg-surface"
    >
      <Boxes />
      <Hidden shown={shown} />
    </svg>
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
    const listening = new AbortController();
    const { signal } = listening;
    element.addEventListener("pointerdown", take, { signal });
    element.addEventListener("pointermove", move, { signal });
    element.addEventListener("lostpointercapture", rest, { signal });
    element.addEventListener("wheel", turn, { signal, passive: false });
    return () => listening.abort();
  }, [getViewport, setViewport, getZoom, zoomTo]);
  return svg;
}
