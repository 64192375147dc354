import { useId } from "react";
import { isOnCpu } from "@/document/pools";
import { formatBytes, formatShare } from "@/lib/format";
import { useDocument, useEditRefusal } from "@/state/document/context";
import { classes } from "@/ui/classes";
import type { Budget } from "./useBudget";

const MIN = 0.05;
const STEP = 0.01;
const SIZES = [8, 16, 24, 40, 48, 64, 80, 96, 141, 180];
const GIB = 2 ** 30;

/** Memory that the loop may use of each GPU. Escape puts it back, Enter takes what was found. */
export function BudgetSlider({ budget, hasTicks = false }: { budget: Budget; hasTicks?: boolean }) {
  const { share, own, estimate, answer } = budget;
  const id = useId();
  const refusal = useEditRefusal();
  const place = useDocument((state) => (isOnCpu(state.document) ? "process" : "GPU"));
  const inForce = answer && estimate === answer.after ? answer.budget_fraction : own;
  const whole = (estimate?.gpus[0]?.usable_bytes ?? 0) / inForce;
  const shown = `${formatBytes(share * whole)}, ${formatShare(share)} of each ${place}`;
  const at = (part: number) => `${((part - MIN) / (1 - MIN)) * 100}%`;
  return (
    <div className="min-w-0 flex-1">
      <div className="flex items-baseline gap-2 text-xs">
        <label htmlFor={id} className="font-semibold">
          Memory budget
        </label>
        <span className="flex-1" />
        <span className="tabular whitespace-nowrap">
          <b className="text-sm">{formatBytes(share * whole)}</b>{" "}
          <span className="text-muted">{formatShare(share)}</span>
        </span>
      </div>
      <div className="relative">
        <input
          id={id}
          type="range"
          className="block w-full accent-accent"
          min={MIN}
          max={1}
          step={STEP}
          value={share}
          disabled={refusal !== null}
          title={refusal ?? undefined}
          aria-valuetext={shown}
          onChange={(event) => budget.move(Number(event.target.value))}
          onKeyDown={(event) => {
            if (event.key === "Escape" && share !== own) {
              event.stopPropagation();
              budget.back();
            }
            if (event.key === "Enter" && share !== own) budget.apply();
          }}
        />
        {share === own ? null : (
          <span
            aria-hidden="true"
            className="pointer-events-none absolute top-0 h-4 w-0.5 rounded-1 bg-line-strong"
            style={{ left: at(own) }}
          />
        )}
      </div>
      {hasTicks ? (
        <div className="tabular relative h-4 text-faint text-xs" aria-hidden="true">
          {SIZES.filter((size) => size * GIB <= whole && size * GIB >= MIN * whole).map((size) => (
            <span
              key={size}
              className={classes(
                "absolute -translate-x-1/2",
                Math.abs(size * GIB - own * whole) < 4 * GIB && "invisible",
              )}
              style={{ left: at((size * GIB) / whole) }}
            >
              {size}
            </span>
          ))}
          {share === own ? null : (
            <span className="absolute -translate-x-1/2 text-muted" style={{ left: at(own) }}>
              was {Math.round((own * whole) / GIB)}
            </span>
          )}
        </div>
      ) : null}
    </div>
  );
}
