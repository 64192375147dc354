import { ChevronRight, X } from "lucide-react";
import { useEffect } from "react";
import { toSpec } from "@/document/convert";
import { isOnCpu } from "@/document/pools";
import { longerBy } from "@/lib/estimate";
import { formatSeconds } from "@/lib/format";
import { useHardwareView } from "@/state/dialogs";
import { useDocument, useSync } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Empty } from "@/ui/States";
import { BudgetSlider } from "./BudgetSlider";
import { Changes } from "./Changes";
import { GpuLanes } from "./GpuLanes";
import { HardwarePicker } from "./HardwarePicker";
import { mainPhase } from "./lanes";
import { OfBefore } from "./OfBefore";
import { Placement } from "./Placement";
import { Gain } from "./StepSplit";
import { TimeLanes } from "./TimeLanes";
import { askOwn, useTrial } from "./trial";
import { type Budget, isPromise, unfitOf, useBudget } from "./useBudget";

/** The machine of the loop: who works on which GPU, what that holds and how long it takes. */
export function HardwareView() {
  const close = useHardwareView((state) => state.close);
  const budget = useBudget();
  useOwnAnswer();
  useEscape(budget);
  const { estimate } = budget;
  return (
    <section aria-label="Hardware of the loop" className="flex h-full min-h-0 flex-col bg-surface">
      <Head onClose={close} />
      {estimate && estimate.gpus.length > 0 ? (
        <div className="flex min-h-0 flex-1 max-lg:flex-col max-lg:overflow-y-auto">
          <div className="flex min-h-0 min-w-0 flex-1 flex-col lg:overflow-y-auto">
            <Controls budget={budget} />
            <GpuLanes estimate={estimate} budget={budget} />
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

function Head({ onClose }: { onClose: () => void }) {
  const name = useDocument((state) => state.document.name);
  return (
    <header className="flex h-11 shrink-0 items-center gap-2 border-line border-b px-4">
      <span className="truncate text-muted text-sm">{name}</span>
      <ChevronRight size={14} className="shrink-0 text-faint" aria-hidden="true" />
      <h2 className="font-semibold text-base">Hardware</h2>
      <span className="flex-1" />
      <Button icon={<X size={14} />} onClick={onClose}>
        Close
      </Button>
    </header>
  );
}

function Controls({ budget }: { budget: Budget }) {
  const isReadonly = useDocument((state) => state.isReadonly);
  const onCpu = useDocument((state) => isOnCpu(state.document));
  const own = useSync((state) => (state.lastRead ?? state.check)?.time ?? null);
  const gpu = budget.estimate?.gpus[0];
  const step = mainPhase(budget.time)?.step_seconds ?? null;
  const before = mainPhase(own)?.step_seconds ?? null;
  const inForce =
    budget.estimate === budget.answer?.after ? budget.answer?.budget_fraction : budget.own;
  return (
    <div className="flex flex-wrap items-start gap-x-6 gap-y-2 border-line border-b px-4 py-3">
      <HardwarePicker />
      {budget.isOfBefore ? <OfBefore /> : null}
      <div className="flex min-w-64 flex-1">
        <BudgetSlider
          share={budget.share}
          own={budget.own}
          whole={(gpu?.usable_bytes ?? 0) / (inForce ?? 1)}
          place={onCpu ? "process" : "GPU"}
          hasTicks
          isReadonly={isReadonly}
          onMove={budget.move}
          onBack={budget.back}
          onApply={budget.apply}
        />
      </div>
      <div className="min-w-40 shrink-0">
        <p className="text-muted text-xs">Step time</p>
        <p
          className="tabular flex items-baseline gap-2 whitespace-nowrap font-semibold text-xl"
          aria-live="polite"
        >
          {unfitOf(budget) === null ? formatSeconds(step) : "does not fit"}
          {isPromise(budget) ? <Gain seconds={longerBy(step, before)} /> : null}
        </p>
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

/** Escape puts the slider back first, and closes what is in sight then. */
function useEscape({ isTrying, back }: Budget): void {
  const close = useHardwareView((state) => state.close);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      if (document.querySelector("[data-radix-popper-content-wrapper],[role=dialog]")) return;
      event.stopPropagation();
      if (isTrying) back();
      else close();
    };
    // Before the shortcuts of the graph, which is not in sight.
    window.addEventListener("keydown", onKey, { capture: true });
    return () => window.removeEventListener("keydown", onKey, { capture: true });
  }, [isTrying, back, close]);
}
