import type { Catalog } from "@/api/types";
import { defineCommand } from "../command";
import { poolField } from "../pools";
import type { Point } from "../types";
import { moveNodes } from "./moveNodes";

interface PlaceInPool {
  catalog: Catalog;
  nodes: readonly string[];
  /** Null: in none that is named. */
  pool: string | null;
  /** Where they were put down, where it was done by dragging. */
  positions?: Record<string, Point>;
}

/** Nodes that run in no pool are moved and nothing else. */
export const placeInPool = defineCommand<PlaceInPool>(
  "Place in pool",
  (draft, { catalog, nodes, pool, positions }) => {
    for (const id of nodes) {
      const node = draft.nodes[id];
      const field = poolField(catalog, node?.kind);
      if (!node || !field) continue;
      if (pool === null) delete node[field];
      else node[field] = pool;
    }
    if (positions) moveNodes.recipe(draft, { positions });
  },
);
