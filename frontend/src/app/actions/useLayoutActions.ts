import { useMemo } from "react";
import { poolsOf } from "@/document/pools";
import type { Action } from "@/state/actions";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { ALIGNMENTS, DISTRIBUTIONS, useAlign, useArrange } from "@/state/useArrange";
import { usePlacing } from "@/state/usePlacing";

/** Where the selected nodes stand, and in which pool they run. */
export function useLayoutActions(): Action[] {
  const { store } = useOpenLoop();
  const { align, distribute } = useAlign();
  const { arrangePools } = useArrange();
  const { canPlace, place, placeInNext } = usePlacing();
  const pools = useDocument((state) =>
    poolsOf(state.document)
      .map(({ name }) => name)
      .join(" "),
  );

  return useMemo(() => {
    const has = (least: number) => () =>
      !store.getState().isReadonly && useSelection.getState().nodes.length >= least;
    return [
      ...ALIGNMENTS.map(([by, label]) => ({
        id: `align-${by}`,
        label,
        keys: [],
        section: "Arrange",
        isEnabled: has(2),
        run: () => align(by, label),
      })),
      ...DISTRIBUTIONS.map(([along, label]) => ({
        id: `distribute-${along}`,
        label,
        keys: [],
        section: "Arrange",
        isEnabled: has(3),
        run: () => distribute(along, label),
      })),
      {
        id: "arrangePools",
        label: "Tidy by pools",
        keys: [],
        section: "Arrange",
        isEnabled: () =>
          !store.getState().isReadonly && poolsOf(store.getState().document).length > 0,
        run: arrangePools,
      },
      {
        id: "nextPool",
        label: "Place in the next pool",
        keys: ["p"],
        section: "Arrange",
        isEnabled: canPlace,
        run: placeInNext,
      },
      ...pools
        .split(" ")
        .filter(Boolean)
        .map((pool) => ({
          id: `pool-${pool}`,
          label: `Place in pool ${pool}`,
          keys: [],
          section: "Arrange",
          isEnabled: canPlace,
          run: () => place(pool),
        })),
      {
        id: "noPool",
        label: "Take out of the pool",
        keys: [],
        section: "Arrange",
        isEnabled: canPlace,
        run: () => place(null),
      },
    ];
  }, [store, align, distribute, canPlace, place, placeInNext, arrangePools, pools]);
}
