import type { PredictedTime } from "@/api/types";
import { isOnCpu } from "@/document/pools";
import { worstOf } from "@/lib/estimate";
import { formatBytes } from "@/lib/format";
import { useHardwareView } from "@/state/dialogs";
import { useDocument } from "@/state/document/context";
import { MemoryBar } from "@/ui/MemoryBar";
import { usePoolColor } from "./colors";
import { gpuRange, type Pool, rolesIn } from "./lanes";

/** GPUs of a pool that are drawn one by one; of more the fullest stands for all. */
const DRAWN = 8;
const SHOWN_POOLS = 3;

/** The memory of every pool, a bar for each GPU. */
export function PoolBars({ pools, time }: { pools: readonly Pool[]; time: PredictedTime | null }) {
  return (
    <div className="flex min-w-0 flex-[3_1_0] gap-4">
      {pools.slice(0, SHOWN_POOLS).map((pool) => (
        <PoolCell key={pool.name} pool={pool} time={time} isOnly={pools.length === 1} />
      ))}
      {pools.length > SHOWN_POOLS ? (
        <span className="self-center whitespace-nowrap text-muted text-xs">
          and {pools.length - SHOWN_POOLS} more
        </span>
      ) : null}
    </div>
  );
}

function PoolCell({
  pool,
  time,
  isOnly,
}: {
  pool: Pool;
  time: PredictedTime | null;
  isOnly: boolean;
}) {
  const open = useHardwareView((state) => state.open);
  const color = usePoolColor();
  const range = useDocument((state) => gpuRange(pool, isOnCpu(state.document)));
  const fullest = worstOf(pool.gpus);
  if (!fullest) return null;
  const drawn = pool.gpus.length > DRAWN ? [fullest] : pool.gpus;
  const nodes = rolesIn(pool.name, time, pool.gpus).map((role) => role.node);
  return (
    <button
      type="button"
      className="flex min-w-0 flex-1 flex-col justify-between rounded-2 text-left hover:bg-hover"
      onClick={open}
    >
      <span className="flex w-full gap-1">
        {drawn.map((gpu) => (
          <span key={gpu.index} className="block min-w-4 flex-1">
            <MemoryBar gpu={gpu} stage={gpu.peak_stage} height={26} />
          </span>
        ))}
      </span>
      <span className="flex w-full min-w-0 items-center gap-1.5 text-xs">
        <span
          className="size-2.5 shrink-0 rounded-[3px]"
          style={{ background: color(nodes) }}
          aria-hidden="true"
        />
        <b className="truncate">{isOnly ? range : pool.name}</b>
        <span
          className={`tabular truncate ${fullest.fits === false ? "font-medium text-error" : "text-muted"}`}
        >
          {formatBytes(fullest.peak_bytes)} of {formatBytes(fullest.usable_bytes)}
          {fullest.peak_stage ? ` in ${fullest.peak_stage}` : ""}
        </span>
      </span>
    </button>
  );
}
