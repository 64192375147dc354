import { useSync } from "@/document/context";
import { partColor } from "@/lib/colors";
import { partsIn, worstOf } from "@/lib/estimate";
import { formatBytes } from "@/lib/format";

/** Memory of the fullest GPU of a pool, as it is predicted. */
export function PoolMemory({ pool }: { pool: string }) {
  const gpu = useSync((state) => {
    const own = state.check?.estimate?.gpus.filter((one) => one.pool === pool) ?? [];
    return worstOf(own);
  });
  if (!gpu || gpu.usable_bytes <= 0) return null;
  const whole = Math.max(gpu.usable_bytes, gpu.peak_bytes ?? 0);
  return (
    <>
      <span className="pool-memory" aria-hidden="true">
        {partsIn(gpu, gpu.peak_stage).map((part, place) => (
          <i
            key={place}
            style={{
              width: `${(100 * part.bytes) / whole}%`,
              background: partColor(part.part),
            }}
          />
        ))}
      </span>
      <span
        className={`pool-memory-text tabular whitespace-nowrap ${gpu.fits === false ? "text-error" : "text-muted"}`}
      >
        {gpu.peak_bytes === null ? "not known" : formatBytes(gpu.peak_bytes)} /{" "}
        {formatBytes(gpu.usable_bytes)}
      </span>
    </>
  );
}
