import { Flame } from "lucide-react";
import type { PhaseEstimate, PredictedTime } from "@/api/types";
import { longerBy } from "@/lib/estimate";
import { formatSeconds, formatShare } from "@/lib/format";
import { sum } from "@/lib/statistics";
import { useNodeColors, useSync } from "@/state/document/context";
import { RichText } from "@/ui/RichText";
import { limitOf, mainPhase, nodeOf, stepShares, verbOf, verbShares } from "./lanes";
import { RunChips, StepNumber } from "./TimeNumbers";

interface StepSplitProps {
  time: PredictedTime | null;
  /** Whether its gain over the loop as it is is shown. */
  isPromise: boolean;
  unfit?: string | null;
}

export function StepSplit({ time, isPromise, unfit = null }: StepSplitProps) {
  const own = useSync((state) => state.check?.time ?? null);
  const phase = mainPhase(time);
  const color = useStageColor();
  const shares = stepShares(phase);
  if (!phase) return null;
  if (unfit !== null) {
    return (
      <section
        aria-label="Predicted step"
        className="flex min-w-0 flex-[4_1_0] flex-col justify-center max-lg:flex-[2_1_0]"
      >
        <b className="text-error text-sm">Does not fit</b>
        <p className="line-clamp-2 text-muted text-xs" title={unfit}>
          <RichText text={unfit} />
        </p>
      </section>
    );
  }
  const gain = isPromise ? longerBy(phase.step_seconds, mainPhase(own)?.step_seconds) : null;
  const isOne = time?.phases.length === 1;
  const whole = sum(shares.map(({ seconds }) => seconds));
  const told = verbShares(shares).map(({ verb, seconds }) => `${verb} ${formatSeconds(seconds)}`);
  return (
    <section
      aria-label="Predicted step"
      className="flex min-w-0 flex-[4_1_0] flex-col justify-between max-lg:flex-[2_1_0]"
    >
      <div className="flex min-w-0 items-center gap-2">
        {phase.step_seconds === null ? (
          <b className="whitespace-nowrap text-sm">Time not known</b>
        ) : (
          <StepNumber
            time={time}
            seconds={phase.step_seconds}
            isTried
            className="whitespace-nowrap text-sm"
          />
        )}
        {phase.step_seconds === null ? null : (
          <span className="truncate text-muted text-xs" title={`a step of ${phase.name}`}>
            {isOne ? "a step" : `a step of ${phase.name}`}
          </span>
        )}
        <Gain seconds={gain} />
        <span className="flex-1" />
        <LimitChip phase={phase} className="max-lg:hidden" />
      </div>
      <div className="flex h-2.5 w-full gap-px overflow-hidden rounded-1" aria-hidden="true">
        {shares.map(({ stage, seconds }) => (
          <span
            key={stage}
            title={`${stage}: ${formatSeconds(seconds)}`}
            className="h-full shrink"
            style={{ width: `${(seconds / whole) * 100}%`, background: color(stage) }}
          />
        ))}
      </div>
      <div className="flex min-w-0 gap-3 text-xs">
        <p className="tabular min-w-0 flex-1 truncate text-muted">{told.join("   ")}</p>
        <span className="max-xl:hidden">
          <RunChips time={time} />
        </span>
      </div>
    </section>
  );
}

/** The stage that is predicted to limit a phase. */
export function LimitChip({ phase, className = "" }: { phase: PhaseEstimate; className?: string }) {
  const limit = limitOf(phase);
  if (!limit) return null;
  const share = formatShare(limit.share);
  return (
    <span
      className={`flex min-w-0 items-center gap-1 rounded-full bg-warning-soft px-2 py-0.5 text-warning text-xs ${className}`}
      title={`${limit.stage} takes ${share} of a step: it is predicted to limit the loop`}
    >
      <Flame size={12} className="shrink-0" aria-hidden="true" />
      <span className="truncate">
        {limit.stage} limits, {share}
      </span>
    </span>
  );
}

export function Gain({ seconds }: { seconds: number | null }) {
  if (seconds === null || Math.abs(seconds) < 1e-3) return null;
  return (
    <span
      className={`tabular whitespace-nowrap font-semibold text-xs ${seconds < 0 ? "text-success" : "text-warning"}`}
    >
      {gainText(seconds)}
    </span>
  );
}

export function gainText(seconds: number): string {
  return `${seconds < 0 ? "−" : "+"}${formatSeconds(Math.abs(seconds))}`;
}

export function OfBefore() {
  return (
    <span
      role="status"
      className="text-warning text-xs"
      title="The loop has errors. Memory and time are those of its last valid state."
    >
      last valid state
    </span>
  );
}

const CARRYING = new Set(["sync"]);
const SOFT = new Set(["learn"]);

/** Of a stage: its node's colour, lighter where it learns; what only carries weights is grey. */
export function useStageColor(): (stage: string) => string {
  const colors = useNodeColors();
  return (stage) => {
    const color = colors[nodeOf(stage)] ?? "var(--muted)";
    if (CARRYING.has(verbOf(stage))) return "var(--line-strong)";
    return SOFT.has(verbOf(stage)) ? `color-mix(in srgb, ${color} 55%, var(--surface))` : color;
  };
}

/** Of the text on a stage: what is drawn light has dark text. */
export function stageInk(stage: string): string {
  const verb = verbOf(stage);
  return SOFT.has(verb) || CARRYING.has(verb) ? "var(--text)" : "var(--surface)";
}

export function usePoolColor(): (nodes: readonly string[]) => string {
  const colors = useNodeColors();
  return ([first = ""]) => colors[first] ?? "var(--muted)";
}
