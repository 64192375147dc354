import type { ButtonHTMLAttributes, KeyboardEvent } from "react";
import type { Estimate, GpuEstimate, MemoryPart } from "@/api/types";
import { partColor } from "@/lib/colors";
import { partNames, partsIn } from "@/lib/estimate";
import { formatBytes, formatName, formatShare } from "@/lib/format";
import { classes } from "./classes";

interface MemoryBarProps {
  gpu: GpuEstimate;
  stage: string | null;
  height: number;
  /** Makes each part a button, such as one that shows its formula. */
  asButton?: (part: MemoryPart) => ButtonHTMLAttributes<HTMLButtonElement>;
  /** Whether Tab reaches its parts: of equal GPUs only those of the first. */
  isInTabOrder?: boolean;
  onKeyDown?: (event: KeyboardEvent<HTMLElement>) => void;
}

/** One GPU as a bar: its parts side by side against its capacity, with the usable limit marked. */
export function MemoryBar(props: MemoryBarProps) {
  const { gpu, stage, height, asButton, isInTabOrder = false, onKeyDown } = props;
  const parts = partsIn(gpu, stage);
  const used = parts.reduce((sum, part) => sum + part.bytes, 0);
  const whole = Math.max(gpu.capacity_bytes, used, 1);
  const limit = gpu.usable_bytes / whole;
  const isOver = used > gpu.usable_bytes;
  const label = `${formatBytes(used)} of ${formatBytes(gpu.usable_bytes)} usable${isOver ? ", over budget" : ""}`;
  const named = { role: asButton ? "group" : "img", "aria-label": label };
  return (
    <div
      {...named}
      className={classes(
        "relative w-full overflow-hidden rounded-1 border bg-sunken",
        isOver ? "border-error" : "border-line",
      )}
      style={{ height }}
      {...(onKeyDown ? { onKeyDown } : {})}
    >
      <div className="flex h-full">
        {parts.map((part, place) => {
          const look = {
            className: classes(
              "h-full border-surface border-r last:border-r-0",
              asButton &&
                "focus-visible:-outline-offset-2 focus-visible:outline-2 focus-visible:outline-text",
            ),
            style: { width: `${(part.bytes / whole) * 100}%`, background: partColor(part.part) },
          };
          return asButton ? (
            <button
              key={place}
              type="button"
              tabIndex={isInTabOrder && place === 0 ? 0 : -1}
              aria-label={`${partName(part)}, ${formatBytes(part.bytes)}`}
              {...look}
              {...asButton(part)}
            />
          ) : (
            <span key={place} title={partTitle(part, used)} {...look} />
          );
        })}
      </div>
      <span
        title={`Usable: ${formatBytes(gpu.usable_bytes)}`}
        className="pointer-events-none absolute inset-y-0 w-0.5 bg-text"
        style={{ left: `calc(${limit * 100}% - 1px)` }}
      />
    </div>
  );
}

/** "Weights of actor". */
export function partName(part: MemoryPart): string {
  return `${formatName(part.part)} of ${part.node}`;
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
