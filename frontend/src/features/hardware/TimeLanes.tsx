import { Flame } from "lucide-react";
import { useState } from "react";
import type { PhaseEstimate, PredictedTime } from "@/api/types";
import { formatSeconds, formatShare } from "@/lib/format";
import { Segmented } from "@/ui/Segmented";
import { stageInk, useStageColor } from "./colors";
import { idleShare, limitOf, mainPhase, nodeOf, stepEnd, verbOf } from "./lanes";

const STEPS = 2;

/** Two predicted steps, pool by pool; where nobody works it is hatched. */
export function TimeLanes({ time }: { time: PredictedTime | null }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const phases = time?.phases ?? [];
  const phase = phases.find((one) => one.name === chosen) ?? mainPhase(time);
  if (!phase || stepEnd(phase.spans) === 0) return null;
  const limit = limitOf(phase);
  return (
    <section aria-label="Where the time goes" className="px-4 py-3">
      <div className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-1">
        <h3 className="font-semibold text-base">Where the time goes</h3>
        <span className="tabular text-muted text-xs">
          two predicted steps of {formatSeconds(phase.step_seconds)}
        </span>
        {phases.length > 1 ? (
          <Segmented
            label="Phase"
            value={phase.name}
            options={phases.map(({ name }) => ({ value: name, label: name }))}
            onChange={setChosen}
          />
        ) : null}
        <span className="flex-1" />
        {limit ? (
          <span className="flex items-center gap-1 rounded-full bg-warning-soft px-2 py-0.5 text-warning text-xs">
            <Flame size={12} aria-hidden="true" />
            {limit.stage} limits, {formatShare(limit.share)}
          </span>
        ) : null}
      </div>
      <Steps phase={phase} />
    </section>
  );
}

function Steps({ phase }: { phase: PhaseEstimate }) {
  const pools = [...new Set(phase.spans.map((one) => one.pool))].filter((pool) => pool !== "");
  const end = stepEnd(phase.spans);
  return (
    <div className="grid grid-cols-[auto_1fr] items-center gap-x-3 gap-y-2">
      {pools.map((pool) => (
        <PoolSteps key={pool} pool={pool} phase={phase} end={end} />
      ))}
      <span />
      <div className="tabular flex text-muted text-xs" aria-hidden="true">
        {Array.from({ length: STEPS }, (_, step) => (
          <span key={step} className="flex-1 border-line-strong border-l pl-1">
            {formatSeconds(step * end)}
          </span>
        ))}
      </div>
    </div>
  );
}

function PoolSteps({ pool, phase, end }: { pool: string; phase: PhaseEstimate; end: number }) {
  const color = useStageColor();
  const idle = idleShare(pool, phase);
  const spans = phase.spans.filter((one) => one.pool === pool && one.end > one.start);
  const told = spans.map((one) => `${one.stage} ${formatSeconds(one.end - one.start)}`);
  return (
    <>
      <span className="max-w-40 text-sm">
        <b className="block truncate">{pool}</b>
        <span className="tabular block text-muted text-xs">idle {formatShare(idle)}</span>
      </span>
      <div
        role="img"
        aria-label={`${pool}: ${told.join(", ")}; idle ${formatShare(idle)}`}
        className="hatched relative h-7 overflow-hidden rounded-1"
      >
        {Array.from({ length: STEPS }, (_, step) =>
          spans.map((one) => (
            <span
              key={`${step} ${one.stage}`}
              title={`${one.stage}: ${formatSeconds(one.end - one.start)}`}
              className="absolute inset-y-0 overflow-hidden whitespace-nowrap border-surface border-r px-1.5 font-medium text-xs leading-7"
              style={{
                left: `${((one.start + step * end) / (STEPS * end)) * 100}%`,
                width: `${((one.end - one.start) / (STEPS * end)) * 100}%`,
                background: color(one.stage),
                color: stageInk(one.stage),
              }}
            >
              {(one.end - one.start) / end > 0.1
                ? `${nodeOf(one.stage)} ${verbOf(one.stage)} ${formatSeconds(one.end - one.start)}`
                : null}
            </span>
          )),
        )}
      </div>
    </>
  );
}
