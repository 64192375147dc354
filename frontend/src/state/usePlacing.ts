import { useMemo } from "react";
import { toast } from "sonner";
import { placeable, poolOf, poolsOf } from "@/document/pools";
import { formatPlural } from "@/lib/format";
import { placeInPool } from "./commands/pools";
import { useOpenLoop } from "./document/context";
import { useSelection } from "./selection";

export function placedLabel(nodes: readonly string[], pool: string, isLeft: boolean): string {
  const [first = "", ...more] = nodes;
  const what = more.length === 0 ? first : formatPlural(nodes.length, "node");
  return isLeft ? `Take ${what} out of pool ${pool}` : `Place ${what} in pool ${pool}`;
}

export function usePlacing() {
  const { catalog, store } = useOpenLoop();
  return useMemo(() => {
    const chosen = () =>
      placeable(catalog, store.getState().document, useSelection.getState().nodes);
    const place = (pool: string | null, group?: string) => {
      const { document } = store.getState();
      const nodes = chosen();
      const [first] = nodes;
      if (first === undefined) return;
      const left = poolOf(catalog, document, first);
      const label = placedLabel(nodes, pool ?? left ?? "", pool === null);
      store.dispatch(placeInPool, { catalog, nodes, pool }, group ? { label, group } : { label });
      toast(label, { id: "placing" });
    };
    return {
      canPlace: () =>
        !store.getState().isReadonly &&
        poolsOf(store.getState().document).length > 0 &&
        chosen().length > 0,
      place,
      placeInNext: () => {
        const { document } = store.getState();
        const [first] = chosen();
        if (first === undefined) return;
        const pools = poolsOf(document).map(({ name }) => name);
        const at = pools.indexOf(poolOf(catalog, document, first) ?? "");
        place(pools[at + 1] ?? null, "placing");
      },
    };
  }, [catalog, store]);
}
