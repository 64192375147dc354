import { useMemo } from "react";
import type { Point } from "@/document/types";
import { arrangePools } from "@/graph/frames";
import { boxesOf } from "@/graph/geometry";
import { type Alignment, align, type Direction, distribute } from "@/graph/guides";
import { arrange } from "@/graph/layout";
import { reveal } from "./canvas";
import { moveNodes } from "./commands/nodes";
import { useOpenLoop } from "./document/context";
import { useSelection } from "./selection";

export function useArrange() {
  const { catalog, store } = useOpenLoop();
  return useMemo(() => {
    const boxes = () => boxesOf(catalog, store.getState().document, useSelection.getState().nodes);
    const move = (positions: Record<string, Point>, label: string, isWhole = false) => {
      store.dispatch(moveNodes, { positions }, { label });
      if (isWhole) reveal(null);
    };
    return {
      /** Lays out the selection, or everything where fewer than two nodes are selected. */
      arrange: () => {
        const { nodes: chosen } = useSelection.getState();
        const { document } = store.getState();
        const isPart = chosen.length > 1;
        const ids = isPart ? chosen : Object.keys(document.nodes);
        move(arrange(catalog, document, ids), "Arrange", !isPart);
      },
      arrangePools: () =>
        move(arrangePools(catalog, store.getState().document), "Tidy by pools", true),
      align: (by: Alignment, label: string) => move(align(boxes(), by), label),
      distribute: (along: Direction, label: string) => move(distribute(boxes(), along), label),
    };
  }, [catalog, store]);
}

export const ALIGNMENTS: readonly [Alignment, string][] = [
  ["left", "Align left sides"],
  ["center", "Align centers"],
  ["right", "Align right sides"],
  ["top", "Align tops"],
  ["middle", "Align middles"],
  ["bottom", "Align bottoms"],
];

export const DISTRIBUTIONS: readonly [Direction, string][] = [
  ["across", "Distribute across"],
  ["down", "Distribute down"],
];
