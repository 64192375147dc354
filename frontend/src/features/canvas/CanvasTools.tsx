import { useReactFlow, useStore } from "@xyflow/react";
import { Grid3x3, Map as MapIcon, Maximize, Minus, Network, Plus } from "lucide-react";
import { useDocument } from "@/document/context";
import { usePreferences } from "@/session/preferences";
import { useArrange } from "@/session/useArrange";
import { IconButton } from "@/ui/IconButton";
import { Overview } from "./Overview";
import { PortLegend } from "./PortLegend";

interface CanvasToolsProps {
  onFit: () => void;
  isTooLarge: boolean;
}

/** Zoom, fit, layout, snap; what the signs mean, or an overview where not everything can be seen. */
export function CanvasTools({ onFit, isTooLarge }: CanvasToolsProps) {
  const hasMinimap = usePreferences((state) => state.hasMinimap);
  return (
    <div className="canvas-tools">
      <CanvasControls onFit={onFit} />
      {hasMinimap || isTooLarge ? <Overview /> : <PortLegend />}
    </div>
  );
}

function CanvasControls({ onFit }: { onFit: () => void }) {
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
        onClick={() => void zoomOut({ duration: 120 })}
      >
        <Minus size={15} />
      </IconButton>
      <Zoom />
      <IconButton
        side="top"
        size="small"
        label="Zoom in"
        keys="+"
        onClick={() => void zoomIn({ duration: 120 })}
      >
        <Plus size={15} />
      </IconButton>
      <span className="canvas-tools-gap" />
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
      <span className="canvas-tools-gap" />
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
  const percent = useStore((state) => Math.round(state.transform[2] * 100));
  return <span className="tabular w-11 text-center text-muted text-xs">{percent} %</span>;
}
