import { useReactFlow, useStore } from "@xyflow/react";
import { Grid3x3, Map as MapIcon, Maximize, Minus, Network, Plus } from "lucide-react";
import { useRef } from "react";
import { outputPort } from "@/document/canConnect";
import { portRef } from "@/document/edges";
import type { Area } from "@/graph/shapes";
import { formatName } from "@/lib/format";
import { useDetail } from "@/state/canvas";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { useArrange } from "@/state/useArrange";
import { IconButton } from "@/ui/IconButton";
import { PortMark } from "@/ui/PortMark";
import { isInSight } from "./fit";
import { Overview } from "./Overview";
import { useMoving } from "./useMoves";

interface ControlsProps {
  onFit: () => void;
  /** The view was changed by a person. */
  onTouch: () => void;
}

interface CanvasToolsProps extends ControlsProps {
  /** All that is drawn. */
  area: Area | null;
}

/** Zoom, fit, layout, snap; what the signs mean, or an overview where not everything is seen. */
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
    <div className="canvas-tools">
      <CanvasControls {...controls} />
      {hasMinimap || !isWhole ? <Overview /> : <PortLegend />}
    </div>
  );
}

function CanvasControls({ onFit, onTouch }: ControlsProps) {
  const { zoomIn, zoomOut } = useReactFlow();
  const hasMinimap = usePreferences((state) => state.hasMinimap);
  const snaps = usePreferences((state) => state.snapsToGrid);
  const set = usePreferences((state) => state.set);
  const isReadonly = useDocument((state) => state.isReadonly);
  const { arrange } = useArrange();
  return (
    <div role="toolbar" aria-label="Canvas" className="canvas-tools-group">
      <IconButton
        side="top"
        size="small"
        label="Zoom out"
        keys="-"
        onClick={() => {
          onTouch();
          void zoomOut({ duration: 120 });
        }}
      >
        <Minus size={15} />
      </IconButton>
      <Zoom />
      <IconButton
        side="top"
        size="small"
        label="Zoom in"
        keys="+"
        onClick={() => {
          onTouch();
          void zoomIn({ duration: 120 });
        }}
      >
        <Plus size={15} />
      </IconButton>
      <span className="h-4.5 mx-1.5 border-l border-line" />
      <IconButton side="top" size="small" label="Show everything" keys="1" onClick={onFit}>
        <Maximize size={15} />
      </IconButton>
      <IconButton
        side="top"
        size="small"
        label="Arrange"
        keys="L"
        disabled={isReadonly}
        onClick={arrange}
      >
        <Network size={15} />
      </IconButton>
      <span className="h-4.5 mx-1.5 border-l border-line" />
      <IconButton
        side="top"
        size="small"
        label="Snap to grid"
        isActive={snaps}
        onClick={() => set({ snapsToGrid: !snaps })}
      >
        <Grid3x3 size={15} />
      </IconButton>
      <IconButton
        side="top"
        size="small"
        label="Overview"
        keys="M"
        isActive={hasMinimap}
        onClick={() => set({ hasMinimap: !hasMinimap })}
      >
        <MapIcon size={15} />
      </IconButton>
    </div>
  );
}

function Zoom() {
  const stretch = useDetail(({ squeeze }) => (squeeze ? Math.max(squeeze.x, squeeze.y) : 1));
  const percent = useStore((state) => Math.round(state.transform[2] * stretch * 100));
  return <span className="tabular w-11 text-center text-muted text-xs">{percent} %</span>;
}

const MAX = 5;

/** What the signs of this loop's edges stand for. */
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
    <div className="canvas-legend" role="group" aria-label="What the symbols mean">
      {types.split(" ").map((name) => (
        <span key={name} title={catalog.port_types[name]?.help}>
          <PortMark
            shape={catalog.port_types[name]?.shape ?? "circle"}
            color={catalog.port_types[name]?.color ?? ""}
            isHandle={catalog.port_types[name]?.handle ?? false}
            size={10}
          />
          {formatName(name)}
        </span>
      ))}
    </div>
  );
}
