import { ChevronDown, Pin, PinOff, Plus, Search, X } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import type { KindInfo } from "@/api/types";
import { kindColor } from "@/lib/colors";
import { clearDropTarget, useDropTarget } from "@/state/canvas";
import { useCatalog, useDocument, useMode } from "@/state/document/context";
import { keepPalette, usePalette } from "@/state/preferences";
import { NODE_DRAG } from "@/state/useAddNode";
import { classes } from "@/ui/classes";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { KindIcon } from "@/ui/KindIcon";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";
import { groupKinds, otherModes, searchGroups, splitByMode } from "./groups";
import { useAddInMiddle } from "./useAddInMiddle";
import { PALETTE_WIDTH, RAIL_WIDTH } from "./widths";

const PaletteBlocks = lazy(() =>
  import("./PaletteBlocks").then((module) => ({ default: module.PaletteBlocks })),
);

interface PaletteProps {
  isWide?: boolean;
  isPinned?: boolean;
  isAsked?: boolean;
}

/**
 * The kinds of nodes that the mode offers, by group, and the others where asked for: drag one onto the canvas,
 * or press it to add it in the middle.
 */
export function Palette({ isWide = true, isPinned = true, isAsked = false }: PaletteProps) {
  const catalog = useCatalog();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [search, setSearch] = useState("");
  const addInMiddle = useAddInMiddle();
  const mode = useMode();
  const { offered, others } = useMemo(
    () => splitByMode(groupKinds(catalog), mode),
    [catalog, mode],
  );
  const [isMoreOpen, setMoreOpen] = useState(false);

  const typed = isWide ? search : "";
  const shown = searchGroups(offered, typed);
  const [more] = searchGroups(others.length > 0 ? [otherModes(others)] : [], typed);
  const listed = more && typed !== "" ? [...shown, more] : shown;
  const first = listed[0]?.kinds[0];
  const list = (kinds: readonly KindInfo[]) => (
    <ul className="flex flex-col gap-0.5">
      {kinds.map((kind) => (
        <li key={kind.kind}>
          <PaletteItem
            kind={kind}
            isCompact={!isWide}
            isDisabled={isReadonly}
            onAdd={() => addInMiddle(kind)}
          />
        </li>
      ))}
    </ul>
  );

  return (
    <nav
      aria-label="Nodes"
      className={classes(
        "absolute inset-y-0 left-0 z-30 flex flex-col overflow-hidden border-line border-r bg-surface motion-safe:transition-[width] motion-safe:duration-100",
        isWide && !isPinned && "shadow-3",
      )}
      style={{ width: isWide ? PALETTE_WIDTH : RAIL_WIDTH }}
    >
      <div className="flex h-12 shrink-0 items-center gap-1 px-2">
        {isWide ? (
          <>
            <PaletteSearch
              isAsked={isAsked}
              search={search}
              onSearch={setSearch}
              onEnter={() => first && addInMiddle(first)}
            />
            <IconButton
              label={isPinned ? "Unpin the list" : "Keep the list open"}
              size="small"
              onClick={() => keepPalette(!isPinned)}
              icon={isPinned ? <PinOff size={14} /> : <Pin size={14} />}
            />
          </>
        ) : (
          <IconButton
            label="Show the nodes"
            keys="["
            side="right"
            className="ml-px bg-accent text-on-accent! hover:bg-accent-hover"
            onClick={() => usePalette.getState().toggle()}
            icon={<Plus size={16} />}
          />
        )}
      </div>
      <div className="palette-list min-h-0 flex-1 overflow-y-auto overflow-x-hidden px-2 pb-3">
        <Suspense>{isWide ? <PaletteBlocks search={typed} /> : null}</Suspense>
        {listed.length === 0 ? (
          <p className="p-2 text-muted text-xs">No node matches “{search}”.</p>
        ) : null}
        {listed.map((group) => (
          <section key={group.name} aria-label={group.title} className="mb-1.5">
            <h2 className="flex h-6 items-center whitespace-nowrap px-1 font-medium text-faint text-xs">
              <span className={isWide ? "" : "sr-only"}>{group.title}</span>
              {isWide ? null : <span className="h-px w-full bg-line" />}
            </h2>
            {list(group.kinds)}
          </section>
        ))}
        {others.length > 0 && typed === "" && isWide ? (
          <section className="mb-3">
            <button
              type="button"
              className="flex w-full items-center gap-1 rounded-1 px-1 pb-1 font-medium text-faint text-xs hover:text-text"
              aria-expanded={isMoreOpen}
              onClick={() => setMoreOpen(!isMoreOpen)}
            >
              <span className="flex-1 text-left">Other modes</span>
              {others.length}
              <ChevronDown size={12} className={isMoreOpen ? "rotate-180" : ""} />
            </button>
            {isMoreOpen ? list(others) : null}
          </section>
        ) : null}
      </div>
    </nav>
  );
}

interface PaletteSearchProps {
  isAsked: boolean;
  search: string;
  onSearch: (search: string) => void;
  onEnter: () => void;
}

function PaletteSearch({ isAsked, search, onSearch, onEnter }: PaletteSearchProps) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isAsked) input.current?.focus();
  }, [isAsked]);
  return (
    <div className="relative min-w-0 flex-1">
      <Search
        size={14}
        className="absolute top-1/2 left-2 -translate-y-1/2 text-faint"
        aria-hidden="true"
      />
      <input
        ref={input}
        role="searchbox"
        aria-label="Search nodes"
        placeholder="Search nodes"
        value={search}
        onChange={(event) => onSearch(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onEnter();
          if (event.key !== "Escape" || search === "") return;
          event.stopPropagation();
          onSearch("");
        }}
        className={`${WIDE_CONTROL} pl-7`}
      />
      {search ? (
        <IconButton
          label="Clear search"
          size="small"
          className="absolute top-1/2 right-1 size-5 -translate-y-1/2"
          onClick={() => onSearch("")}
          icon={<X size={12} />}
        />
      ) : null}
    </div>
  );
}

interface PaletteItemProps {
  kind: KindInfo;
  isDisabled: boolean;
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
