import { useReactFlow } from "@xyflow/react";
import { Grid3x3, Map as MapIcon, Maximize, Minus, Network, Plus } from "lucide-react";
import { useDocument } from "@/document/context";
import { usePreferences } from "@/session/preferences";
import { useArrange } from "@/session/useArrange";
import { IconButton } from "@/ui/IconButton";

/** Zoom, fit, layout, snap, overview. */
export function CanvasControls({ onFit }: { onFit: () => void }) {
  const { zoomIn, zoomOut } = useReactFlow();
  const hasMinimap = usePreferences((state) => state.hasMinimap);
  const snaps = usePreferences((state) => state.snapsToGrid);
  const set = usePreferences((state) => state.set);
  const isReadonly = useDocument((state) => state.isReadonly);
  const arrange = useArrange();
  return (
    <div
      role="toolbar"
      aria-label="Canvas"
      className="canvas-tools absolute bottom-3 left-3 rounded-2 border border-line bg-surface p-0.5 shadow-2"
    >
      <IconButton
        side="right"
        size="small"
        label="Zoom in"
        keys="+"
        onClick={() => void zoomIn({ duration: 120 })}
      >
        <Plus size={15} />
      </IconButton>
      <IconButton
        side="right"
        size="small"
        label="Zoom out"
        keys="-"
        onClick={() => void zoomOut({ duration: 120 })}
      >
        <Minus size={15} />
      </IconButton>
      <IconButton side="right" size="small" label="Show everything" keys="1" onClick={onFit}>
        <Maximize size={15} />
      </IconButton>
      <span className="canvas-tools-gap" />
      <IconButton
        side="right"
        size="small"
        label="Arrange"
        keys="L"
        disabled={isReadonly}
        onClick={arrange}
      >
        <Network size={15} />
      </IconButton>
      <IconButton
        side="right"
        size="small"
        label="Snap to grid"
        isActive={snaps}
        onClick={() => set({ snapsToGrid: !snaps })}
      >
        <Grid3x3 size={15} />
      </IconButton>
      <IconButton
        side="right"
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
