import { type Node, ViewportPortal } from "@xyflow/react";
import { Cpu } from "lucide-react";
import { useMemo } from "react";
import { frameAround, squeezeBoxes } from "@/graph/compact";
import { type Frame, framesWhile } from "@/graph/frames";
import { boxesOf } from "@/graph/geometry";
import type { Box } from "@/graph/shapes";
import { partColor } from "@/lib/colors";
import { partsIn, worstOf } from "@/lib/estimate";
import { formatBytes } from "@/lib/format";
import { useDetail, useDropTarget } from "@/state/canvas";
import { useDocument, useNodeColors, useOpenLoop, useSync } from "@/state/document/context";
import { select, useSelection } from "@/state/selection";
import { useFoldedDocument, useGroups } from "@/state/useGroups";
import { usePlacing } from "@/state/usePlacing";
import { classes } from "@/ui/classes";
import { Menu, MenuItem, MenuLabel } from "@/ui/Menu";
import { boxOf } from "../guides/useDragging";

export function Frames({ nodes }: { nodes: readonly Node[] }) {
  const { catalog } = useOpenLoop();
  const own = useDocument((state) => state.document);
  const read = useFoldedDocument();
  // biome-ignore lint/correctness/useExhaustiveDependencies: `own` is what is read
  const document = useMemo(() => read(), [read, own]);
  const aimed = useDropTarget((state) => state.pool);
  const colors = useNodeColors();
  const squeeze = useDetail((state) => state.squeeze);
  const moved = useDropTarget((state) => state.moved);
  const frames = useMemo(() => {
    const after = nodes.map((node) => boxOf(node));
    const began = new Map(boxesOf(catalog, document, moved).map((box) => [box.id, box]));
    const before = after.map((box) => began.get(box.id) ?? box);
    const going = new Set(moved);
    if (squeeze === null) return framesWhile(catalog, document, before, after, going);
    const drawn = [before, after].map((boxes) => squeezeBoxes(boxes, squeeze)) as [Box[], Box[]];
    return framesWhile(catalog, document, ...drawn, going, frameAround(squeeze));
  }, [catalog, document, nodes, moved, squeeze]);
  if (frames.length === 0) return null;
  return (
    <ViewportPortal>
      {frames.map((frame) => (
        <PoolFrame
          key={frame.pool.name}
          frame={frame}
          color={colors[frame.members[0] ?? ""] ?? "var(--muted)"}
          aimed={aimed?.name === frame.pool.name ? (aimed.isLeft ? "left" : "entered") : undefined}
        />
      ))}
    </ViewportPortal>
  );
}

const LOOKS = {
  rest: "border-[length:calc(1px*var(--unzoom))] border-[color-mix(in_oklab,var(--node-color)_45%,var(--line))] bg-(--node-color)/4.5",
  entered: "border-[length:calc(2px*var(--unzoom))] border-accent bg-accent/9",
  left: "border-[length:calc(2px*var(--unzoom))] border-accent border-dashed",
};

interface PoolFrameProps {
  frame: Frame;
  color: string;
  aimed: "entered" | "left" | undefined;
}

function PoolFrame({ frame, color, aimed }: PoolFrameProps) {
  const { pool, members, left, top, right, bottom } = frame;
  const { canPlace, place } = usePlacing();
  const { closePool } = useGroups();
  const selected = useSelection((state) => state.nodes);
  const isOffered = selected.length > 0 && canPlace();
  return (
    <section
      aria-label={`Pool ${pool.name}${pool.size ? `, ${pool.size}` : ""}`}
      className={classes(
        "pool-frame @container pointer-events-none absolute -z-2 rounded-[14px] compact:rounded-[calc(8px*var(--unzoom))]",
        LOOKS[aimed ?? "rest"],
      )}
      style={
        {
          "--node-color": color,
          left,
          top,
          width: right - left,
          height: bottom - top,
        } as React.CSSProperties
      }
    >
      <Menu
        align="start"
        trigger={
          <button
            type="button"
            className="nopan nodrag pointer-events-auto flex h-8 w-full items-center gap-2 rounded-t-[14px] px-3.5 text-left text-[12px] compact:absolute compact:top-0 compact:left-0 compact:h-[15px] compact:w-[calc(100%*var(--zoom,1))] compact:origin-top-left compact:scale-(--unzoom) compact:gap-1 compact:px-1.5 compact:text-2xs/[15px] hover:bg-(--node-color)/10"
          >
            <Cpu
              size={14}
              aria-hidden="true"
              className="shrink-0 text-(--node-color) compact:hidden"
            />
            <b className="max-w-[60%] shrink-0 truncate font-semibold">{pool.name}</b>
            <span className="whitespace-nowrap text-muted">{pool.size}</span>
            <span className="flex-1" />
            <PoolMemory pool={pool.name} />
          </button>
        }
      >
        <MenuLabel>
          <PoolMemory pool={pool.name} />
        </MenuLabel>
        <MenuItem isDisabled={members.length === 0} onSelect={() => select({ nodes: members })}>
          {members.length === 0 ? "No node uses this pool" : "Select its nodes"}
        </MenuItem>
        <MenuItem isDisabled={members.length === 0} onSelect={() => closePool(pool.name)}>
          Collapse to one card
        </MenuItem>
        <MenuItem isDisabled={!isOffered} onSelect={() => place(pool.name)}>
          {isOffered ? "Place the selection here" : "Select nodes to place them here"}
        </MenuItem>
        {members.some((id) => selected.includes(id)) ? (
          <MenuItem onSelect={() => place(null)}>Take the selection out</MenuItem>
        ) : null}
      </Menu>
      {aimed ? (
        <p className="absolute -top-7 left-2 whitespace-nowrap rounded-[6px] bg-accent px-2 py-0.5 text-[12px] text-on-accent compact:text-[calc(11px*var(--unzoom))]">
          {aimed === "entered" ? `Place in pool ${pool.name}` : `Take out of pool ${pool.name}`}
        </p>
      ) : members.length === 0 ? (
        <p className="absolute right-3.5 bottom-1.5 left-3.5 text-[12px] text-muted compact:text-[calc(11px*var(--unzoom))]">
          Nothing runs here yet. Drag a node in.
        </p>
      ) : null}
    </section>
  );
}

function PoolMemory({ pool }: { pool: string }) {
  const gpu = useSync((state) => {
    const own = state.check?.estimate?.gpus.filter((one) => one.pool === pool) ?? [];
    return worstOf(own);
  });
  if (!gpu || gpu.usable_bytes <= 0) return null;
  const whole = Math.max(gpu.usable_bytes, gpu.peak_bytes ?? 0);
  return (
    <>
      <span
        className="flex h-2 w-11 shrink-0 overflow-hidden rounded-[2px] bg-pressed @max-[241px]:hidden compact:hidden"
        aria-hidden="true"
      >
        {partsIn(gpu, gpu.peak_stage).map((part, place) => (
          <i
            key={place}
            style={{
              width: `${(100 * part.bytes) / whole}%`,
              background: partColor(part.part),
            }}
          />
        ))}
      </span>
      <span
        className={`tabular whitespace-nowrap @max-[301px]:hidden compact:hidden ${gpu.fits === false ? "text-error" : "text-muted"}`}
      >
        {gpu.peak_bytes === null ? "not known" : formatBytes(gpu.peak_bytes)} /{" "}
        {formatBytes(gpu.usable_bytes)}
      </span>
    </>
  );
}
