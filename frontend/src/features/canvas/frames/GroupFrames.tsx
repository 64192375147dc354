import { type Node, ViewportPortal } from "@xyflow/react";
import { ChevronsDownUp } from "lucide-react";
import { membersOf } from "@/document/groups";
import { frameAround, squeezeBoxes } from "@/graph/compact";
import { areaAround } from "@/graph/geometry";
import { type Around, grown } from "@/graph/shapes";
import { useDetail } from "@/state/canvas";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useFoldedDocument, useGroups } from "@/state/useGroups";
import { Menu, MenuItem } from "@/ui/Menu";
import { boxOf } from "../guides/useDragging";

const AROUND: Around = { side: 14, top: 34, bottom: 12 };

/** Open groups of nodes, as frames around them. */
export function GroupFrames({ nodes }: { nodes: readonly Node[] }) {
  const { catalog } = useOpenLoop();
  const groups = useDocument((state) => state.document.groups);
  const read = useFoldedDocument();
  const squeeze = useDetail((state) => state.squeeze);
  if (!groups) return null;
  const document = read();
  const placed = nodes.map((node) => boxOf(node));
  const boxes = squeeze ? squeezeBoxes(placed, squeeze) : placed;
  return (
    <ViewportPortal>
      {Object.entries(document.groups ?? {}).map(([name, group]) => {
        if (group.closed || group.pool !== undefined) return null;
        const members = membersOf(catalog, document, group);
        const area = areaAround(boxes.filter(({ id }) => members.includes(id)));
        if (!area) return null;
        const frame = grown(area, squeeze ? frameAround(squeeze) : AROUND);
        return <GroupFrame key={name} name={name} count={members.length} {...frame} />;
      })}
    </ViewportPortal>
  );
}

interface GroupFrameProps {
  name: string;
  count: number;
  left: number;
  top: number;
  right: number;
  bottom: number;
}

function GroupFrame({ name, count, left, top, right, bottom }: GroupFrameProps) {
  const { setClosed, ungroup, rename, selectMembers } = useGroups();
  const isReadonly = useDocument((state) => state.isReadonly);
  const askName = () => {
    const wish = window.prompt("Name of the group", name);
    if (wish !== null) rename(name, wish.trim());
  };
  return (
    <section
      aria-label={`Group ${name}`}
      className="group-frame pointer-events-none absolute"
      style={{ left, top, width: right - left, height: bottom - top }}
    >
      <div className="absolute inset-0 -z-2 rounded-[14px] border-[length:calc(1px*var(--unzoom))] border-line-strong border-dashed bg-muted/5 compact:rounded-[calc(8px*var(--unzoom))]" />
      <div className="relative z-2000 flex h-8 w-full items-center gap-1 px-2 text-[12px] compact:absolute compact:top-0 compact:left-0 compact:h-[15px] compact:w-[calc(100%*var(--zoom,1))] compact:origin-top-left compact:scale-(--unzoom) compact:text-2xs/[15px]">
        <Menu
          align="start"
          trigger={
            <button
              type="button"
              className="nopan nodrag pointer-events-auto min-w-0 truncate rounded-1 px-1.5 font-semibold hover:bg-hover"
              title={`${name}, ${count} nodes`}
            >
              {name}
            </button>
          }
        >
          <MenuItem onSelect={() => selectMembers(name)}>Select its nodes</MenuItem>
          <MenuItem onSelect={() => setClosed(name, true)}>Collapse</MenuItem>
          <MenuItem isDisabled={isReadonly} onSelect={askName}>
            Rename
          </MenuItem>
          <MenuItem isDisabled={isReadonly} onSelect={() => ungroup(name)}>
            Ungroup
          </MenuItem>
        </Menu>
        <button
          type="button"
          className="nopan nodrag pointer-events-auto inline-flex size-6 shrink-0 items-center justify-center rounded-1 text-muted hover:bg-hover compact:size-4"
          aria-label={`Collapse ${name}`}
          title="Collapse the group to one card"
          onClick={() => setClosed(name, true)}
        >
          <ChevronsDownUp size={13} aria-hidden="true" />
        </button>
      </div>
    </section>
  );
}
