import { ChevronDown, Search, X } from "lucide-react";
import { useMemo, useState } from "react";
import type { KindInfo } from "@/api/types";
import { useCatalog, useDocument } from "@/document/context";
import { useMode } from "@/document/useMode";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { groupKinds, otherModes, searchGroups, splitByMode } from "./groups";
import { PaletteItem } from "./PaletteItem";
import { useAddInMiddle } from "./useAddInMiddle";

/**
 * The kinds of nodes that the mode offers, by group, and the others where asked for: drag one onto the canvas,
 * or press it to add it in the middle.
 */
export function Palette() {
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

  const shown = searchGroups(offered, search);
  const [more] = searchGroups(others.length > 0 ? [otherModes(others)] : [], search);
  const listed = more && search !== "" ? [...shown, more] : shown;
  const list = (kinds: readonly KindInfo[]) => (
    <ul className="flex flex-col gap-0.5">
      {kinds.map((kind) => (
        <li key={kind.kind}>
          <PaletteItem kind={kind} isDisabled={isReadonly} onAdd={() => addInMiddle(kind)} />
        </li>
      ))}
    </ul>
  );

  return (
    <nav
      aria-label="Nodes"
      className="flex h-full w-[208px] flex-col border-line border-r bg-surface"
    >
      <div className="relative p-2">
        <Search
          size={14}
          className="absolute top-1/2 left-4 -translate-y-1/2 text-faint"
          aria-hidden="true"
        />
        <input
          role="searchbox"
          aria-label="Search nodes"
          placeholder="Search nodes"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
          onKeyDown={(event) => {
            const first = listed[0]?.kinds[0];
            if (event.key === "Enter" && first) addInMiddle(first);
            if (event.key === "Escape") setSearch("");
          }}
          className={`${WIDE_CONTROL} pl-7`}
        />
        {search ? (
          <IconButton
            label="Clear search"
            size="small"
            className="absolute top-1/2 right-3 size-5 -translate-y-1/2"
            onClick={() => setSearch("")}
          >
            <X size={12} />
          </IconButton>
        ) : null}
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto px-2 pb-3">
        {listed.length === 0 ? (
          <p className="p-2 text-muted text-xs">No node matches “{search}”.</p>
        ) : null}
        {listed.map((group) => (
          <section key={group.name} className="mb-3">
            <h2 className="px-1 pb-1 font-medium text-faint text-xs">{group.title}</h2>
            {list(group.kinds)}
          </section>
        ))}
        {others.length > 0 && search === "" ? (
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
