import { Cpu } from "lucide-react";
import type { Frame } from "@/document/frames";
import { useSelection } from "@/session/selection";
import { usePlacing } from "@/session/usePlacing";
import { Menu, MenuItem, MenuLabel } from "@/ui/Menu";
import { PoolMemory } from "./PoolMemory";

interface PoolFrameProps {
  frame: Frame;
  color: string;
  /** What letting go would do. */
  aimed: "entered" | "left" | undefined;
}

/** A pool with its nodes in it. Its head is a menu. */
export function PoolFrame({ frame, color, aimed }: PoolFrameProps) {
  const { pool, members, left, top, right, bottom } = frame;
  const { canPlace, place } = usePlacing();
  const selected = useSelection((state) => state.nodes);
  const isOffered = selected.length > 0 && canPlace();
  return (
    <section
      aria-label={`Pool ${pool.name}${pool.size ? `, ${pool.size}` : ""}`}
      className="pool-frame"
      data-aimed={aimed}
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
          <button type="button" className="pool-frame-head nopan nodrag">
            <Cpu size={14} aria-hidden="true" />
            <b className="truncate">{pool.name}</b>
            <span className="whitespace-nowrap text-muted">{pool.size}</span>
            <span className="flex-1" />
            <PoolMemory pool={pool.name} />
          </button>
        }
      >
        <MenuLabel>
          <PoolMemory pool={pool.name} />
        </MenuLabel>
        <MenuItem
          isDisabled={members.length === 0}
          onSelect={() => useSelection.getState().select({ nodes: members })}
        >
          {members.length === 0 ? "No node uses this pool" : "Select its nodes"}
        </MenuItem>
        <MenuItem isDisabled={!isOffered} onSelect={() => place(pool.name)}>
          {isOffered ? "Place the selection here" : "Select nodes to place them here"}
        </MenuItem>
        {members.some((id) => selected.includes(id)) ? (
          <MenuItem onSelect={() => place(null)}>Take the selection out</MenuItem>
        ) : null}
      </Menu>
      {aimed ? (
        <p className="pool-frame-word">
          {aimed === "entered" ? `Place in pool ${pool.name}` : `Take out of pool ${pool.name}`}
        </p>
      ) : members.length === 0 ? (
        <p className="pool-frame-word">Nothing runs here yet. Drag a node in.</p>
      ) : null}
    </section>
  );
}
