import { Handle, type NodeProps, Position } from "@xyflow/react";
import { ChevronsUpDown, Group } from "lucide-react";
import { type CSSProperties, memo } from "react";
import { outputPort } from "@/document/canConnect";
import { portRef } from "@/document/edges";
import { indexProblems, splitProblems, worstSeverity } from "@/document/problems";
import type { Dot } from "@/graph/compact";
import { kindOf } from "@/graph/geometry";
import type { Socket } from "@/graph/sockets";
import { formatPlural } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { useDetail } from "@/state/canvas";
import { useDocument, useNodeColors, useOpenLoop, useSync } from "@/state/document/context";
import { useIsDimmed } from "@/state/lit";
import { useFold, useGroups } from "@/state/useGroups";
import { KindIcon } from "@/ui/KindIcon";
import { portColor } from "@/ui/PortMark";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { socketHandle } from "./handles";
import { BADGE, TONES } from "./NodeBadge";
import { useMeasured } from "./useNodePorts";
import type { CardData } from "./useSockets";

const MAX_SIGNS = 6;
const NO_DOTS: readonly Dot[] = [];
const NO_SOCKETS: readonly Socket[] = [];

/** A closed group: its name, what is in it, and the ends of the edges that lead in and out. */
export const GroupCard = memo(function GroupCard({ id, selected, data }: NodeProps) {
  const card = useFold().cards.find((one) => one.id === id);
  const { setClosed } = useGroups();
  const { runId } = useOpenLoop();
  const isCompact = useDetail((state) => state.squeeze !== null);
  const { sockets = NO_SOCKETS, dots = NO_DOTS } = data as Partial<CardData>;
  const ends = isCompact ? dots : (card?.ends ?? NO_DOTS);
  const isDimmed = useIsDimmed(id);
  const isBusy = useLive(
    "gauges",
    (live) => card?.members.some((member) => (live.state.gauges?.nodes?.[member]?.busy ?? 0) > 0),
    false,
  );
  const bottoms = sockets.map(({ key, x, side }) => `${key} ${x} ${side}`).join(",");
  useMeasured(id, `${ends.map(({ port, top }) => `${port} ${top}`).join(",")} ${bottoms}`);
  if (!card) return null;
  const { name, members } = card;
  const open = () => setClosed(name, false);
  return (
    <article
      className="loop-node group-card border-dashed"
      data-selected={selected || undefined}
      data-dimmed={isDimmed || undefined}
      data-activity={isBusy && runId ? "running" : undefined}
      style={{ "--node-color": "var(--muted)", "--node-soft": "var(--hover)" } as CSSProperties}
      aria-label={`${name}, group of ${members.length}`}
      onDoubleClick={(event) => {
        event.stopPropagation();
        open();
      }}
    >
      <div
        className="absolute top-0 left-0 flex h-[calc(100%*var(--zoom,1))] w-[calc(100%*var(--zoom,1))] origin-top-left scale-(--unzoom) flex-col justify-center gap-1 overflow-hidden px-3 [container:compact-card/size]"
        title={[name, ...members].join("\n")}
      >
        <div className="flex items-center gap-2 card-mark:gap-0">
          <Group size={15} aria-hidden="true" className="shrink-0 text-muted card-mark:hidden" />
          <span className="min-w-0 flex-1">
            <span className="loop-node-name block truncate font-semibold text-xs">{name}</span>
            <span className="block truncate text-2xs text-muted card-low:hidden">
              {formatPlural(members.length, "node")}
            </span>
          </span>
          <button
            type="button"
            className="nodrag inline-flex size-6 shrink-0 items-center justify-center rounded-1 text-muted hover:bg-hover card-mark:hidden"
            aria-label={`Expand ${name}`}
            title="Expand the group"
            onClick={(event) => {
              event.stopPropagation();
              open();
            }}
          >
            <ChevronsUpDown size={14} aria-hidden="true" />
          </button>
        </div>
        <Signs members={members} />
      </div>
      <GroupBadge members={members} />
      {ends.map(({ port, isTarget, top }) => (
        <GroupEnd
          key={`${port} ${isTarget}`}
          id={port}
          port={port}
          isTarget={isTarget}
          position={isTarget ? Position.Left : Position.Right}
          style={{ top }}
        />
      ))}
      {sockets.map(({ key, port, isTarget, side, x }) => (
        <GroupEnd
          key={`${key} ${isTarget}`}
          id={socketHandle(port, key)}
          port={port}
          isTarget={isTarget}
          position={side === "top" ? Position.Top : Position.Bottom}
          style={{ left: x }}
        />
      ))}
    </article>
  );
});

function Signs({ members }: { members: readonly string[] }) {
  const { catalog, store } = useOpenLoop();
  const colors = useNodeColors();
  const { nodes } = store.getState().document;
  return (
    <span className="flex gap-1.5 card-low:hidden card-mark:hidden" aria-hidden="true">
      {members.slice(0, MAX_SIGNS).map((member) => (
        <span key={member} style={{ color: colors[member] ?? "var(--muted)" }}>
          <KindIcon name={kindOf(catalog, nodes[member]?.kind)?.icon} size={13} />
        </span>
      ))}
      {members.length > MAX_SIGNS ? (
        <span className="text-2xs text-muted">+{members.length - MAX_SIGNS}</span>
      ) : null}
    </span>
  );
}

function GroupBadge({ members }: { members: readonly string[] }) {
  const { catalog } = useOpenLoop();
  const diagnostics = useSync((state) => state.check?.report.diagnostics);
  const { byNode } = indexProblems(diagnostics);
  const own = members.flatMap((member) => byNode.get(member) ?? []);
  const { faults } = splitProblems(catalog, own);
  const worst = worstSeverity(faults);
  if (worst === null) return null;
  return (
    <span
      className={`${BADGE} ${TONES[worst].badge}`}
      role="img"
      aria-label={formatPlural(faults.length, "problem")}
      title={faults.map(({ message }) => message).join("\n")}
    >
      <SeverityIcon severity={worst} size={13} />
      {faults.length > 1 ? faults.length : null}
    </span>
  );
}

interface GroupEndProps {
  id: string;
  port: string;
  isTarget: boolean;
  position: Position;
  style: CSSProperties;
}

function GroupEnd({ id, port, isTarget, position, style }: GroupEndProps) {
  const { catalog } = useOpenLoop();
  const type = useDocument(({ document }) => {
    const own = portRef(port);
    const kind = kindOf(catalog, document.nodes[own.node]?.kind);
    return isTarget
      ? kind?.inputs.find(({ name }) => name === own.port)?.type
      : outputPort(catalog, document, own)?.type;
  });
  return (
    <Handle
      id={id}
      type={isTarget ? "target" : "source"}
      position={position}
      isConnectable={false}
      title={port}
      role="img"
      aria-label={`${isTarget ? "input" : "output"} ${port}`}
      className="compact-dot after:pointer-events-none after:size-[calc(7px*var(--unzoom))] after:rounded-full after:bg-(--port-color)"
      style={
        {
          ...style,
          "--port-color": portColor(catalog.port_types[type ?? ""]?.color),
        } as CSSProperties
      }
    />
  );
}
