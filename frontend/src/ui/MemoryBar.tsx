import type { Estimate, GpuEstimate, MemoryPart } from "@/api/types";
import { partColor } from "@/lib/colors";
import { partNames, partsIn } from "@/lib/estimate";
import { formatBytes, formatName, formatShare } from "@/lib/format";
import { classes } from "./classes";

interface MemoryBarProps {
  gpu: GpuEstimate;
  stage: string | null;
  height: number;
}

/** One GPU as a bar: its parts side by side against its capacity, with the usable limit marked. */
export function MemoryBar({ gpu, stage, height }: MemoryBarProps) {
  const parts = partsIn(gpu, stage);
  const used = parts.reduce((sum, part) => sum + part.bytes, 0);
  const whole = Math.max(gpu.capacity_bytes, used, 1);
  const limit = gpu.usable_bytes / whole;
  const isOver = used > gpu.usable_bytes;
  return (
    <div
      role="img"
      aria-label={`${formatBytes(used)} of ${formatBytes(gpu.usable_bytes)} usable${isOver ? ", over budget" : ""}`}
      className={classes(
        "relative w-full overflow-hidden rounded-1 border bg-sunken",
        isOver ? "border-error" : "border-line",
      )}
      style={{ height }}
    >
      <div className="flex h-full">
        {parts.map((part, place) => (
          <span
            key={place}
            title={partTitle(part, used)}
            className="h-full border-surface border-r last:border-r-0"
            style={{ width: `${(part.bytes / whole) * 100}%`, background: partColor(part.part) }}
          />
        ))}
      </div>
      <span
        title={`Usable: ${formatBytes(gpu.usable_bytes)}`}
        className="absolute inset-y-0 w-0.5 bg-text"
        style={{ left: `calc(${limit * 100}% - 1px)` }}
      />
    </div>
  );
}

function partTitle(part: MemoryPart, used: number): string {
  return `${part.node} · ${formatName(part.part)}\n${formatBytes(part.bytes)}, ${formatShare(part.bytes / used)} of this moment\nin ${part.stages.join(", ")}`;
}

export function MemoryLegend({ estimate, className }: { estimate: Estimate; className: string }) {
  return (
    <ul className={`flex flex-wrap ${className}`} aria-label="Parts of memory">
      {partNames(estimate).map((part) => (
        <li key={part} className="flex items-center gap-1.5 text-muted text-xs">
          <span className="size-2.5 rounded-[2px]" style={{ background: partColor(part) }} />
          {formatName(part)}
        </li>
      ))}
    </ul>
  );
}
