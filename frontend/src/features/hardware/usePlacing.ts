import { type DragEvent, useState } from "react";
import type { Catalog } from "@/api/types";
import { isOnCpu, type PoolSizes, poolPaths, poolSizes } from "@/document/pools";
import type { Path } from "@/lib/paths";
import { placeNode, resizePool } from "@/state/commands/pools";
import { useDocument, useEditRefusal, useOpenLoop } from "@/state/document/context";
import { poolsOf, type Role } from "./lanes";
import { useBudget } from "./useBudget";

const TYPE = "application/x-coloop-role";

function useLaidOut(): PoolSizes {
  const { estimate } = useBudget();
  const written = useDocument((state) => state.document);
  const sizes = poolSizes(written)?.sizes;
  if (sizes) return sizes;
  const pools = estimate ? poolsOf(estimate) : [];
  return Object.fromEntries(pools.map((pool) => [pool.name, pool.gpus.length]));
}

export function usePlacing() {
  const { catalog, store } = useOpenLoop();
  const laidOut = useLaidOut();
  const refusal = useEditRefusal();
  const onCpu = useDocument(
    (state) => isOnCpu(state.document) && poolSizes(state.document) === null,
  );
  const reason =
    refusal ?? (onCpu ? "Without GPUs the compiler chooses the processes itself" : null);
  return {
    pools: Object.keys(laidOut),
    /** Why nothing can be placed; null: it can. */
    reason,
    canSplit: Object.values(laidOut).some((size) => size > 1),
    place: (role: Role, pool: string) => {
      if (reason !== null) return;
      const kind = store.getState().document.nodes[role.node]?.kind ?? "";
      const path = poolPath(catalog, kind, LEARNING.has(role.verb));
      if (path === null) return;
      const label = `Place ${role.node} ${role.verb} in ${pool}`;
      store.dispatch(placeNode, { node: role.node, pool, path, laidOut }, { label });
    },
    resize: (pool: string, gpus: number) => {
      const other = Object.keys(laidOut).find((name) => name !== pool);
      if (reason !== null || other === undefined) return;
      const label = `Give ${pool} ${gpus} GPUs`;
      store.dispatch(resizePool, { pool, gpus, other, laidOut }, { label });
    },
  };
}

const LEARNING = new Set(["learn"]);

/** The field of a kind that names a pool: of its weights, or where it writes of that; null: it has none. */
function poolPath(catalog: Catalog, kind: string, ofWeights: boolean): Path | null {
  const byDepth = poolPaths(catalog, kind).toSorted((a, b) => a.length - b.length);
  return (ofWeights ? byDepth[0] : byDepth.at(-1)) ?? null;
}

export function useDropRole(pool: string) {
  const { place } = usePlacing();
  const [isOver, setOver] = useState(false);
  return {
    isOver,
    onDragOver: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes(TYPE)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      setOver(false);
      const text = event.dataTransfer.getData(TYPE);
      if (!text) return;
      event.preventDefault();
      place(JSON.parse(text) as Role, pool);
    },
  };
}

export function dragRole(role: Role) {
  return (event: DragEvent) => {
    event.dataTransfer.setData(TYPE, JSON.stringify(role));
    event.dataTransfer.effectAllowed = "move";
  };
}
