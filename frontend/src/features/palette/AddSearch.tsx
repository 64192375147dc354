import { Command } from "cmdk";
import { Blocks } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { KindInfo } from "@/api/types";
import { meansBlock, searchBlocks } from "@/catalog/search";
import { offersBlock, openFor } from "@/document/blocks";
import { fittingPort, spliceOf } from "@/document/canConnect";
import { edgeIndex, portText } from "@/document/edges";
import { kindColor } from "@/lib/colors";
import { formatPlural } from "@/lib/format";
import { addBlock } from "@/state/addBlock";
import { addNodeTo } from "@/state/addNode";
import { type AddRequest, hideAddSearch } from "@/state/dialogs";
import { useMode, useOpenLoop } from "@/state/document/context";
import { useBlocks } from "@/state/queries";
import { Kbd } from "@/ui/Kbd";
import { KindIcon } from "@/ui/KindIcon";
import { useWindowEvent } from "@/ui/useWindowEvent";
import { groupKinds, otherModes, searchGroups, splitByMode } from "./groups";

const HEADING =
  "[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-faint [&_[cmdk-group-heading]]:text-xs";
const WIDTH = 288;
const HEIGHT = 340;

function placeholder({ from, edge }: AddRequest): string {
  if (edge) return "What goes between?";
  return from ? `What goes with ${portText(from)}?` : "Add a node";
}

/** A list of kinds at the pointer, the most likely first and those of other modes last; from a port, only those that fit it. */
export function AddSearch({ request }: { request: AddRequest }) {
  const { catalog, store } = useOpenLoop();
  const panel = useRef<HTMLDivElement>(null);
  useReturnFocus();
  const { from, edge, screen, flow, isUnplaced } = request;

  const [search, setSearch] = useState("");

  const ports = useMemo(() => {
    const { document } = store.getState();
    const cut = edge ? document.edges[edgeIndex(document, edge)] : undefined;
    const portOf = (kind: KindInfo) => {
      if (cut) return spliceOf(catalog, document, cut, kind.kind)?.input ?? null;
      return from ? fittingPort(catalog, document, from, kind) : "";
    };
    return new Map(Object.values(catalog.kinds).map((kind) => [kind.kind, portOf(kind)]));
  }, [catalog, store, from, edge]);
  const fitting = groupKinds(catalog)
    .map((group) => ({
      ...group,
      kinds: group.kinds.filter(({ kind }) => ports.get(kind) !== null),
    }))
    .filter((group) => group.kinds.length > 0);
  const mode = useMode();
  const allBlocks = useBlocks();
  const blocks = useMemo(() => {
    if (edge) return [];
    const { document } = store.getState();
    return from
      ? allBlocks.filter((block) => openFor(catalog, document, block, from) !== null)
      : allBlocks;
  }, [allBlocks, catalog, store, from, edge]);
  const foundBlocks = searchBlocks(blocks, search).filter(
    (block) => search.trim() !== "" || offersBlock(mode, block),
  );
  const { offered, others } = splitByMode(fitting, mode);
  const groups = [
    ...searchGroups(offered, search),
    ...searchGroups(others.length > 0 ? [otherModes(others)] : [], search),
  ];

  const isBlockMeant = meansBlock(
    foundBlocks,
    groups.flatMap((group) => group.kinds),
    search,
  );
  const blockGroup =
    foundBlocks.length > 0 ? (
      <Command.Group heading="Blocks" className={HEADING}>
        {foundBlocks.map((block) => (
          <Command.Item
            key={block.id}
            value={`block ${block.id}`}
            onSelect={() => {
              addBlock(
                { catalog, store },
                { block, at: { x: flow.x, y: flow.y - 40 }, isUnplaced, from },
              );
              hideAddSearch();
            }}
            className="flex h-8 cursor-default items-center gap-2 rounded-2 px-2 text-sm data-[selected=true]:bg-hover"
          >
            <span className="loop-node-icon size-5">
              <Blocks size={13} aria-hidden="true" />
            </span>
            <span className="flex-1 truncate">{block.title}</span>
            <span className="text-faint text-xs">
              {formatPlural(Object.keys(block.nodes).length, "node")}
            </span>
          </Command.Item>
        ))}
      </Command.Group>
    ) : null;

  useWindowEvent(
    "pointerdown",
    (event) => panel.current?.contains(event.target as Node) || hideAddSearch(),
    { capture: true },
  );

  const left = Math.max(8, Math.min(screen.x, window.innerWidth - WIDTH - 8));
  const top = Math.max(8, Math.min(screen.y, window.innerHeight - HEIGHT - 8));

  return (
    <div
      ref={panel}
      className="fixed z-40 animate-[pop-in_100ms_ease-out] overflow-hidden rounded-3 border border-line bg-raised shadow-3"
      style={{ left, top, width: WIDTH }}
    >
      <Command
        label="Add a node"
        loop
        shouldFilter={false}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.preventDefault();
            hideAddSearch();
          }
        }}
      >
        <Command.Input
          autoFocus
          value={search}
          onValueChange={setSearch}
          placeholder={placeholder(request)}
          className="h-10 w-full border-line border-b bg-transparent px-3 text-sm outline-none"
        />
        <Command.List className="max-h-[268px] overflow-y-auto p-1">
          <Command.Empty className="p-3 text-muted text-sm">
            {from && fitting.length === 0 && blocks.length === 0
              ? `Nothing more can be connected to ${portText(from)}.`
              : "No kind of node fits."}
          </Command.Empty>
          {isBlockMeant ? blockGroup : null}
          {groups.map((group) => (
            <Command.Group key={group.name} heading={group.title} className={HEADING}>
              {group.kinds.map((kind) => (
                <Command.Item
                  key={kind.kind}
                  value={kind.kind}
                  onSelect={() => {
                    addNodeTo(
                      { catalog, store, mode },
                      { kind, at: { x: flow.x, y: flow.y - 40 }, isUnplaced, from, edge },
                    );
                    hideAddSearch();
                  }}
                  style={{ "--node-color": kindColor(kind) } as React.CSSProperties}
                  className="flex h-8 cursor-default items-center gap-2 rounded-2 px-2 text-sm data-[selected=true]:bg-hover"
                >
                  <span className="loop-node-icon size-5">
                    <KindIcon name={kind.icon} size={13} />
                  </span>
                  <span className="flex-1 truncate">{kind.title}</span>
                  {ports.get(kind.kind) ? (
                    <span className="text-faint text-xs">{ports.get(kind.kind)}</span>
                  ) : null}
                </Command.Item>
              ))}
            </Command.Group>
          ))}
          {isBlockMeant ? null : blockGroup}
        </Command.List>
        <footer className="flex items-center gap-2 border-line border-t px-3 py-1.5 text-faint text-xs">
          <Kbd>↑↓</Kbd> choose <Kbd>↵</Kbd> add <Kbd>esc</Kbd> close
        </footer>
      </Command>
    </div>
  );
}

/** When a panel that took the focus goes away with it, what had the focus before has it again. */
function useReturnFocus(): void {
  const [opener] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      const isLost = document.activeElement === null || document.activeElement === document.body;
      if (isLost && opener instanceof HTMLElement && opener.isConnected) opener.focus();
    },
    [opener],
  );
}
