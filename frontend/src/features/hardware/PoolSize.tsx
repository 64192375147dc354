import { Minus, Plus } from "lucide-react";
import { IconButton } from "@/ui/IconButton";
import type { Pool } from "./lanes";
import type { Budget } from "./useBudget";
import { usePlacing } from "./usePlacing";

/** GPUs go to a pool from the next one, and back. */
export function PoolSize({ pool, budget }: { pool: Pool; budget: Budget }) {
  const { pools, reason, resize } = usePlacing(budget);
  const size = pool.gpus.length;
  if (pools.length < 2 || reason !== null) return null;
  return (
    <span className="flex items-center">
      <IconButton
        label={size > 1 ? `One GPU less for ${pool.name}` : "A pool has one GPU at least"}
        size="small"
        aria-disabled={size < 2}
        onClick={() => size > 1 && resize(pool.name, size - 1)}
      >
        <Minus size={13} />
      </IconButton>
      <IconButton
        label={`One GPU more for ${pool.name}`}
        size="small"
        onClick={() => resize(pool.name, size + 1)}
      >
        <Plus size={13} />
      </IconButton>
    </span>
  );
}
