import {
  AlignCenterHorizontal,
  AlignCenterVertical,
  AlignEndHorizontal,
  AlignEndVertical,
  AlignHorizontalDistributeCenter,
  AlignStartHorizontal,
  AlignStartVertical,
  AlignVerticalDistributeCenter,
  type LucideIcon,
} from "lucide-react";
import { ALIGNMENTS, DISTRIBUTIONS } from "@/session/alignments";
import { useAlign } from "@/session/useAlign";
import { IconButton } from "@/ui/IconButton";

const ICONS: Record<string, LucideIcon> = {
  left: AlignStartVertical,
  center: AlignCenterVertical,
  right: AlignEndVertical,
  top: AlignStartHorizontal,
  middle: AlignCenterHorizontal,
  bottom: AlignEndHorizontal,
  across: AlignHorizontalDistributeCenter,
  down: AlignVerticalDistributeCenter,
};

/** Puts the selected nodes in line, or at even distances. */
export function AlignButtons({ nodes }: { nodes: number }) {
  const { align, distribute } = useAlign();
  if (nodes < 2) return null;
  const button = (id: string, label: string, run: () => void) => {
    const Icon = ICONS[id];
    return (
      <IconButton key={id} size="small" label={label} onClick={run}>
        {Icon ? <Icon size={15} /> : null}
      </IconButton>
    );
  };
  return (
    <div role="toolbar" aria-label="Align" className="flex gap-1 px-4 pb-2">
      {ALIGNMENTS.map(([by, label]) => button(by, label, () => align(by, label)))}
      {nodes > 2
        ? DISTRIBUTIONS.map(([along, label]) =>
            button(along, label, () => distribute(along, label)),
          )
        : null}
    </div>
  );
}
