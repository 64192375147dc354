import type { PredictedTime } from "@/api/types";
import { behind } from "@/features/hardware/formulas/formula";
import { formatCount, formatSeconds } from "@/lib/format";
import { classes } from "@/ui/classes";

/** A number that has its formula behind it. */
export const ASKABLE =
  "tabular rounded-1 underline decoration-dotted decoration-faint underline-offset-3 hover:decoration-text";

interface NumbersProps {
  time: PredictedTime | null;
  /** Whether what is shown is of a budget that is tried. */
  isTried: boolean;
  className?: string;
}

export function StepNumber({
  time,
  seconds,
  isTried,
  className = "",
}: NumbersProps & { seconds: number }) {
  const phase = time?.main;
  const shown = formatSeconds(seconds);
  if (!phase) return <b className={`tabular ${className}`}>{shown}</b>;
  return (
    <button
      className={classes(ASKABLE, "font-semibold", className)}
      {...behind({ of: "step", phase, isTried }, `A step of ${phase}`)}
    >
      {shown}
    </button>
  );
}

/** Time of the whole run, its GPU-hours, and its cost at the price that the loop gives. */
export function WholeRun({ time, isTried, className = "" }: NumbersProps) {
  const { total_seconds: total, gpu_hours: hours, cost } = time ?? {};
  if (typeof total !== "number") return null;
  const title = "At most: a phase may end earlier";
  return (
    <span className={classes("text-muted", className)} title={title}>
      {" "}
      The whole run takes up to{" "}
      <button
        className={classes(ASKABLE, "text-text")}
        {...behind({ of: "total", isTried }, "The whole run")}
      >
        {formatSeconds(total)}
      </button>
      {typeof hours === "number" ? (
        <>
          ,{" "}
          <button
            className={classes(ASKABLE, "whitespace-nowrap text-text")}
            {...behind({ of: "gpu_hours", isTried }, "GPU-hours of the whole run")}
          >
            {formatCount(hours)} GPU-hours
          </button>
        </>
      ) : null}
      {typeof cost === "number" ? (
        <>
          {" "}
          and costs{" "}
          <button
            className={classes(ASKABLE, "whitespace-nowrap text-text")}
            {...behind({ of: "cost", isTried }, "Cost of the whole run")}
          >
            {formatCost(cost)}
          </button>
        </>
      ) : null}
      .
    </span>
  );
}

/** The same in two short lines, under the time of a step. */
export function RunChips({ time }: { time: PredictedTime | null }) {
  const { gpu_hours: hours, cost } = time ?? {};
  if (typeof hours !== "number") return null;
  return (
    <p className="flex items-baseline gap-3 whitespace-nowrap text-muted text-xs">
      <button
        className={ASKABLE}
        {...behind({ of: "gpu_hours", isTried: true }, "GPU-hours of the whole run")}
      >
        {formatCount(hours)} GPU-hours
      </button>
      {typeof cost === "number" ? (
        <button
          className={ASKABLE}
          {...behind({ of: "cost", isTried: true }, "Cost of the whole run")}
        >
          costs {formatCost(cost)}
        </button>
      ) : null}
    </p>
  );
}

/** In the currency of the price, whichever that is. */
export function formatCost(cost: number): string {
  const digits = cost < 1000 ? 2 : 0;
  return cost.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

interface CorrectionMarkProps extends NumbersProps {
  stage: string;
}

/** Beside the time of a stage that earlier runs on this machine corrected: by how much, and what it was. */
export function CorrectionMark({ stage, time, isTried, className = "" }: CorrectionMarkProps) {
  const correction = time?.corrections.find((one) => one.stage === stage);
  if (!correction) return null;
  const runs = correction.runs === 1 ? "one run" : `${correction.runs} runs`;
  const factor = `×${correction.factor.toFixed(2)}`;
  return (
    <button
      className={classes(
        "tabular ml-1 rounded-full bg-info-soft px-1.5 text-2xs text-info",
        className,
      )}
      aria-label={`${stage}: corrected ${factor} by ${runs} on this machine`}
      {...behind({ of: "stage", stage, phase: null, isTried }, stage)}
    >
      {factor}
    </button>
  );
}
