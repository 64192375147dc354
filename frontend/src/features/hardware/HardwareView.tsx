import { ChevronRight, X } from "lucide-react";
import { useEffect, useState } from "react";
import type { PhaseEstimate, PredictedTime } from "@/api/types";
import { toSpec } from "@/document/convert";
import { behind, rove } from "@/features/hardware/formulas/formula";
import { longerBy } from "@/lib/estimate";
import { formatSeconds, formatShare } from "@/lib/format";
import { showHardware } from "@/state/dialogs";
import { useDocument, useSync } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Segmented } from "@/ui/Segmented";
import { Empty } from "@/ui/States";
import { useWindowEvent } from "@/ui/useWindowEvent";
import { BudgetSlider } from "./BudgetSlider";
import { Changes } from "./Changes";
import { GpuLanes } from "./GpuLanes";
import { HardwarePicker } from "./HardwarePicker";
import { idleShare, mainPhase, nodeOf, stepEnd, verbOf } from "./lanes";
import { Placement } from "./Placement";
import { Gain, LimitChip, OfBefore, stageInk, useStageColor } from "./StepSplit";
import { CorrectionMark, RunChips, StepNumber } from "./TimeNumbers";
import { askOwn, type Budget, isPromise, unfitOf, useBudget, useTrial } from "./useBudget";

export function HardwareView() {
  const budget = useBudget();
  useOwnAnswer();
  useEscape(budget);
  const { estimate } = budget;
  return (
    <section aria-label="Hardware of the loop" className="flex h-full min-h-0 flex-col bg-surface">
      <Head />
      {estimate && estimate.gpus.length > 0 ? (
        <div className="flex min-h-0 flex-1 max-lg:flex-col max-lg:overflow-y-auto">
          <div className="flex min-h-0 min-w-0 flex-1 flex-col lg:overflow-y-auto">
            <Controls budget={budget} />
            <GpuLanes estimate={estimate} />
            <TimeLanes time={budget.time} />
          </div>
          <aside
            aria-label="Settings and placement"
            className="w-[400px] shrink-0 border-line border-l max-xl:w-[340px] max-lg:w-full max-lg:border-t max-lg:border-l-0 lg:overflow-y-auto"
          >
            <Changes budget={budget} />
            <Placement budget={budget} />
          </aside>
        </div>
      ) : (
        <Empty title="No estimate yet">
          Memory and time are estimated once the loop is valid and something runs in it.
        </Empty>
      )}
    </section>
  );
}

function Head() {
  const name = useDocument((state) => state.document.name);
  return (
    <header className="flex h-11 shrink-0 items-center gap-2 border-line border-b px-4">
      <span className="truncate text-muted text-sm">{name}</span>
      <ChevronRight size={14} className="shrink-0 text-faint" aria-hidden="true" />
      <h2 className="font-semibold text-base">Hardware</h2>
      <span className="flex-1" />
      <Button icon={<X size={14} />} onClick={() => showHardware(false)}>
        Close
      </Button>
    </header>
  );
}

function Controls({ budget }: { budget: Budget }) {
  const own = useSync((state) => (state.lastRead ?? state.check)?.time ?? null);
  const step = mainPhase(budget.time)?.step_seconds ?? null;
  const before = mainPhase(own)?.step_seconds ?? null;
  const isOver = step === null && (budget.estimate?.gpus ?? []).some((gpu) => gpu.fits === false);
  return (
    <div className="flex flex-wrap items-start gap-x-6 gap-y-2 border-line border-b px-4 py-3">
      <HardwarePicker />
      {budget.isOfBefore ? <OfBefore /> : null}
      <div className="flex min-w-64 flex-1">
        <BudgetSlider budget={budget} hasTicks />
      </div>
      <div className="min-w-40 shrink-0">
        <p className="text-muted text-xs">Step time</p>
        <p
          className="tabular flex items-baseline gap-2 whitespace-nowrap font-semibold text-xl"
          aria-live="polite"
        >
          {unfitOf(budget) !== null || isOver ? (
            "does not fit"
          ) : step === null ? (
            formatSeconds(step)
          ) : (
            <StepNumber time={budget.time} seconds={step} isTried />
          )}
          {isPromise(budget) ? <Gain seconds={longerBy(step, before)} /> : null}
        </p>
        {unfitOf(budget) === null ? <RunChips time={budget.time} /> : null}
      </div>
    </div>
  );
}

/** What would change under the loop's own budget is asked for where nothing is tried, once for each state of the loop. */
function useOwnAnswer(): void {
  const document = useDocument((state) => state.document);
  const isMissing = useTrial((state) => state.budget === null && state.answer === null);
  useEffect(() => {
    if (!isMissing) return;
    const timer = setTimeout(() => askOwn(toSpec(document)), 150);
    return () => clearTimeout(timer);
  }, [document, isMissing]);
}

function useEscape({ isTrying, back }: Budget): void {
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    if (document.querySelector("[data-radix-popper-content-wrapper],[role=dialog]")) return;
    event.stopPropagation();
    if (isTrying) back();
    else showHardware(false);
  };
  // Before the shortcuts of the graph, which is not in sight.
  useWindowEvent("keydown", press, { capture: true });
}

const STEPS = 2;

function TimeLanes({ time }: { time: PredictedTime | null }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const phases = time?.phases ?? [];
  const phase = phases.find((one) => one.name === chosen) ?? mainPhase(time);
  if (!phase || stepEnd(phase.spans) === 0) return null;
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
        <LimitChip phase={phase} />
      </div>
      <Steps phase={phase} />
      <Corrections time={time} />
    </section>
  );
}

/** What earlier runs on this machine corrected, and by how much. */
function Corrections({ time }: { time: PredictedTime | null }) {
  const corrections = time?.corrections ?? [];
  if (corrections.length === 0) return null;
  return (
    <p className="mt-2 flex flex-wrap items-baseline gap-x-3 gap-y-1 text-muted text-xs">
      Corrected by earlier runs on this machine:
      {corrections.map(({ stage }) => (
        <span key={stage} className="whitespace-nowrap">
          {stage}
          <CorrectionMark stage={stage} time={time} isTried />
        </span>
      ))}
    </p>
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
  const idle = formatShare(idleShare(pool, phase));
  const spans = phase.spans
    .filter((span) => span.pool === pool && span.end > span.start)
    .map((span) => ({ ...span, seconds: span.end - span.start }));
  const told = spans.map(({ stage, seconds }) => `${stage} ${formatSeconds(seconds)}`);
  return (
    <>
      <span className="max-w-40 text-sm">
        <b className="block truncate">{pool}</b>
        <span className="tabular block text-muted text-xs">idle {idle}</span>
      </span>
      <div
        role="group"
        aria-label={`${pool}: ${told.join(", ")}; idle ${idle}`}
        className="hatched relative h-7 overflow-hidden rounded-1"
        onKeyDown={rove}
      >
        {Array.from({ length: STEPS }, (_, step) =>
          spans.map(({ stage, start, seconds }, place) => (
            <button
              key={`${step} ${stage}`}
              {...behind({ of: "stage", stage, phase: phase.name, isTried: true }, stage)}
              tabIndex={step === 0 && place === 0 ? 0 : -1}
              aria-label={`${stage}: ${formatSeconds(seconds)}`}
              aria-hidden={step > 0}
              className="absolute inset-y-0 overflow-hidden whitespace-nowrap border-surface border-r px-1.5 text-left font-medium text-xs leading-7 focus-visible:-outline-offset-2 focus-visible:outline-2 focus-visible:outline-text"
              style={{
                left: `${((start + step * end) / (STEPS * end)) * 100}%`,
                width: `${(seconds / (STEPS * end)) * 100}%`,
                background: color(stage),
                color: stageInk(stage),
              }}
            >
              {seconds / end > 0.1
                ? `${nodeOf(stage)} ${verbOf(stage)} ${formatSeconds(seconds)}`
                : null}
            </button>
          )),
        )}
      </div>
    </>
  );
}
