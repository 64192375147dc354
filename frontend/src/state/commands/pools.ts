import type { Catalog } from "@/api/types";
import { type PoolSizes, poolField, poolSizes } from "@/document/pools";
import type { LoopDocument, Point } from "@/document/types";
import { isObject, type Path, writePath } from "@/lib/paths";
import { defineCommand } from "../document/command";
import { moveNodes } from "./nodes";

interface PlaceInPool {
  catalog: Catalog;
  nodes: readonly string[];
  pool: string | null;
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

interface PlaceNode {
  node: string;
  pool: string;
  path: Path;
  laidOut: PoolSizes;
}

export const placeNode = defineCommand<PlaceNode>(
  "Place role",
  (draft, { node, pool, path, laidOut }) => {
    const data = draft.nodes[node];
    if (!data) return;
    const sizes = { ...laidOut };
    if (!(pool in sizes)) {
      const [largest, size] = Object.entries(sizes).toSorted((a, b) => b[1] - a[1])[0] ?? [];
      if (largest === undefined || size === undefined || size < 2) return;
      sizes[largest] = size - Math.floor(size / 2);
      sizes[pool] = Math.floor(size / 2);
    }
    writeSizes(draft as LoopDocument, sizes);
    writePath(data, path, pool);
  },
);

interface ResizePool {
  pool: string;
  gpus: number;
  other: string;
  laidOut: PoolSizes;
}

export const resizePool = defineCommand<ResizePool>(
  "Move GPUs",
  (draft, { pool, gpus, other, laidOut }) => {
    const both = (laidOut[pool] ?? 0) + (laidOut[other] ?? 0);
    if (gpus < 1 || gpus >= both) return;
    writeSizes(draft as LoopDocument, { ...laidOut, [pool]: gpus, [other]: both - gpus });
  },
);

function writeSizes(draft: LoopDocument, sizes: PoolSizes): void {
  const hardware = isObject(draft.rest.hardware) ? draft.rest.hardware : {};
  const unit = poolSizes(draft)?.unit ?? "gpus";
  const pools = Object.fromEntries(
    Object.entries(sizes).map(([name, size]) => [name, { [unit]: size }]),
  );
  draft.rest.hardware = { ...hardware, pools };
}
