import { Search, X } from "lucide-react";
import { useMemo, useState } from "react";
import { useCatalog, useDocument } from "@/document/context";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { groupKinds, searchGroups } from "./groups";
import { PaletteItem } from "./PaletteItem";
import { useAddInMiddle } from "./useAddInMiddle";

/** All kinds of nodes by group: drag one onto the canvas, or press it to add it in the middle. */
export function Palette() {
  const catalog = useCatalog();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [search, setSearch] = useState("");
  const addInMiddle = useAddInMiddle();
  const groups = useMemo(() => groupKinds(catalog), [catalog]);

  const shown = searchGroups(groups, search);

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
            const first = shown[0]?.kinds[0];
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
        {shown.length === 0 ? (
          <p className="p-2 text-muted text-xs">No node matches “{search}”.</p>
        ) : null}
        {shown.map((group) => (
          <section key={group.name} className="mb-3">
            <h2 className="px-1 pb-1 font-medium text-faint text-xs">{group.title}</h2>
            <ul className="flex flex-col gap-0.5">
              {group.kinds.map((kind) => (
                <li key={kind.kind}>
                  <PaletteItem
                    kind={kind}
                    isDisabled={isReadonly}
                    onAdd={() => addInMiddle(kind)}
                  />
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </nav>
  );
}
