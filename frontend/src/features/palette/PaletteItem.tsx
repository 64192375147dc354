import type { KindInfo } from "@/api/types";
import { kindColor } from "@/lib/colors";
import { clearDropTarget, useDropTarget } from "@/state/canvas";
import { NODE_DRAG } from "@/state/useAddNode";
import { classes } from "@/ui/classes";
import { KindIcon } from "@/ui/KindIcon";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";

interface PaletteItemProps {
  kind: KindInfo;
  isDisabled: boolean;
  /** The icon alone; the name is its label. */
  isCompact?: boolean;
  onAdd: () => void;
}

export function PaletteItem({ kind, isDisabled, isCompact = false, onAdd }: PaletteItemProps) {
  const help = kind.runnable
    ? kind.help
    : `${kind.help} Can be drawn and checked; not yet runnable.`;
  return (
    <Tooltip
      side="right"
      text={
        <>
          {isCompact ? <b className="block">{kind.title}</b> : null}
          <RichText text={help} />
        </>
      }
    >
      <button
        type="button"
        draggable={!isDisabled}
        disabled={isDisabled}
        onClick={({ detail, currentTarget }) => {
          // The second press of a double click means the same node; keys are for the graph again.
          if (detail > 1) return;
          if (detail > 0) currentTarget.blur();
          onAdd();
        }}
        onDragStart={(event) => {
          event.dataTransfer.setData(NODE_DRAG, kind.kind);
          event.dataTransfer.effectAllowed = "copy";
          useDropTarget.setState({ kind: kind.kind });
        }}
        onDragEnd={clearDropTarget}
        style={{ "--node-color": kindColor(kind) } as React.CSSProperties}
        aria-label={isCompact ? kind.title : undefined}
        className={classes(
          "flex h-8 w-full cursor-grab items-center gap-2 overflow-hidden rounded-2 px-1.5 text-left text-sm hover:bg-hover active:cursor-grabbing disabled:cursor-not-allowed disabled:opacity-50",
        )}
      >
        <span className="loop-node-icon size-6">
          <KindIcon name={kind.icon} size={14} />
        </span>
        {isCompact ? null : (
          <>
            <span className="min-w-0 flex-1 truncate">{kind.title}</span>
            {kind.runnable ? null : <span className="text-2xs text-faint">later</span>}
          </>
        )}
      </button>
    </Tooltip>
  );
}
