import { useMemo } from "react";
import type { KindInfo } from "@/api/types";
import { useCatalog, useDocument } from "@/document/context";
import { useMode } from "@/document/useMode";
import { groupKinds, otherModes, splitByMode } from "./groups";
import { PaletteItem } from "./PaletteItem";
import { useAddInMiddle } from "./useAddInMiddle";

/** The palette where there is little room: icons only, names on hover; those of other modes last. */
export function PaletteRail() {
  const catalog = useCatalog();
  const isReadonly = useDocument((state) => state.isReadonly);
  const mode = useMode();
  const groups = useMemo(() => {
    const { offered, others } = splitByMode(groupKinds(catalog), mode);
    return others.length > 0 ? [...offered, otherModes(others)] : offered;
  }, [catalog, mode]);
  const add: (kind: KindInfo) => void = useAddInMiddle();
  return (
    <nav
      aria-label="Nodes"
      className="h-full w-12 shrink-0 overflow-y-auto border-line border-r bg-surface py-2"
    >
      {groups.map((group) => (
        <ul
          key={group.name}
          className="mx-auto mb-2 flex w-9 flex-col gap-0.5 border-line border-b pb-2 last:border-b-0"
        >
          {group.kinds.map((kind) => (
            <li key={kind.kind}>
              <PaletteItem kind={kind} isCompact isDisabled={isReadonly} onAdd={() => add(kind)} />
            </li>
          ))}
        </ul>
      ))}
    </nav>
  );
}
