/** The batch of a learner as numbers that multiply out, one ladder for each phase in which it learns. */
import { useMemo } from "react";
import type { BatchLadder, BatchRung } from "@/api/types";
import { useSync } from "./context";

export type Ladder = BatchLadder;
export type Rung = BatchRung;

const NONE: readonly Ladder[] = [];

export function useLadders(node: string): readonly Ladder[] {
  const ladders = useSync((state) => state.check?.plan?.ladders ?? NONE);
  return useMemo(() => ladders.filter((ladder) => ladder.node === node), [ladders, node]);
}
