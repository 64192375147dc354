import { Blocks, Copy, Files, Group, Network, Plus, Route, Trash2 } from "lucide-react";
import { formatPlural } from "@/lib/format";
import { showKeys } from "@/state/actions";
import { removeItems } from "@/state/commands/nodes";
import { showDialog } from "@/state/dialogs";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { followRow } from "@/state/lit";
import { clearSelection, useSelection } from "@/state/selection";
import { useArrange } from "@/state/useArrange";
import { useClipboard } from "@/state/useClipboard";
import { useGroups } from "@/state/useGroups";
import { Menu, MenuItem, MenuLabel } from "@/ui/Menu";

interface Point {
  x: number;
  y: number;
}

interface CanvasMenuProps {
  at: Point;
  /** Asks for a node to be added at a place of the window. */
  onAdd: (at: Point) => void;
  onClose: () => void;
}

/** What can be done with the selection that a right click is on; on empty canvas, what is added there. */
export function CanvasMenu({ at, onAdd, onClose }: CanvasMenuProps) {
  const nodes = useSelection((state) => state.nodes);
  return (
    <Menu
      isOpen
      onOpenChange={(isOpen) => isOpen || onClose()}
      onClosed={() => {}}
      trigger={
        <span
          aria-hidden="true"
          className="pointer-events-none fixed size-0"
          style={{ left: at.x, top: at.y }}
        />
      }
    >
      {nodes.length === 0 ? <OnCanvas onAdd={() => onAdd(at)} /> : <OnNodes nodes={nodes} />}
    </Menu>
  );
}

function OnCanvas({ onAdd }: { onAdd: () => void }) {
  const isReadonly = useDocument((state) => state.isReadonly);
  const { arrange } = useArrange();
  return (
    <>
      <MenuItem icon={<Plus size={14} />} isDisabled={isReadonly} onSelect={onAdd}>
        Add a node here
      </MenuItem>
      <MenuItem
        icon={<Network size={14} />}
        keys={showKeys("l")}
        isDisabled={isReadonly}
        onSelect={arrange}
      >
        Arrange everything
      </MenuItem>
    </>
  );
}

function OnNodes({ nodes }: { nodes: readonly string[] }) {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const { copy, duplicate } = useClipboard();
  const { arrange } = useArrange();
  const { group } = useGroups();
  const remove = () => {
    store.dispatch(removeItems, { nodes, edges: [] });
    clearSelection();
  };
  return (
    <>
      <MenuLabel>{nodes.length === 1 ? nodes[0] : formatPlural(nodes.length, "node")}</MenuLabel>
      <MenuItem
        icon={<Copy size={14} />}
        keys={showKeys("mod+c")}
        onSelect={() => void copy(nodes)}
      >
        Copy
      </MenuItem>
      {nodes.length === 1 && nodes[0] ? (
        <MenuItem
          icon={<Route size={14} />}
          keys={showKeys("w")}
          onSelect={() => followRow(nodes[0] ?? "")}
        >
          Follow a row
        </MenuItem>
      ) : null}
      {isReadonly ? null : (
        <>
          <MenuItem
            icon={<Files size={14} />}
            keys={showKeys("mod+d")}
            onSelect={() => duplicate(nodes)}
          >
            Duplicate
          </MenuItem>
          <MenuItem icon={<Blocks size={14} />} onSelect={() => showDialog("saveBlock")}>
            Save as block
          </MenuItem>
          {nodes.length > 1 ? (
            <>
              <MenuItem icon={<Group size={14} />} keys={showKeys("mod+g")} onSelect={group}>
                Group
              </MenuItem>
              <MenuItem icon={<Network size={14} />} keys={showKeys("l")} onSelect={arrange}>
                Arrange
              </MenuItem>
            </>
          ) : null}
          <MenuItem
            icon={<Trash2 size={14} />}
            keys={showKeys("delete")}
            isDanger
            onSelect={remove}
          >
            Delete
          </MenuItem>
        </>
      )}
    </>
  );
}
