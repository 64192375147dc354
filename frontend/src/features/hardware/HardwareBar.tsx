import { Wrench } from "lucide-react";
import { useState } from "react";
import { isOnCpu as isLoopOnCpu } from "@/document/pools";
import { spareOf } from "@/lib/estimate";
import { formatBytes, formatPlural } from "@/lib/format";
import { useHardwareView } from "@/state/dialogs";
import { useDocument, useSync } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { BudgetSlider } from "./BudgetSlider";
import { HardwarePicker } from "./HardwarePicker";
import { poolsOf } from "./lanes";
import { OfBefore } from "./OfBefore";
import { PoolBars } from "./PoolBars";
import { StepSplit } from "./StepSplit";
import { type Budget, isPromise, unfitOf, useBudget, useResetTrial } from "./useBudget";

/** The foot of the editor: the machine, the memory of its GPUs, the predicted step and the budget, always in view. */
export function HardwareBar() {
  useResetTrial();
  const isOpen = useHardwareView((state) => state.isOpen);
  return isOpen ? null : <Bar />;
}

function Bar() {
  const budget = useBudget();
  const status = useSync((state) => state.checkStatus);
  const { estimate } = budget;
  return (
    <section
      aria-label="Hardware and memory"
      className="flex h-[78px] shrink-0 items-stretch gap-5 border-line border-t bg-surface px-3.5 py-2"
    >
      <div className="flex shrink-0 flex-col justify-between">
        <HardwarePicker />
        <MachineNote budget={budget} />
      </div>
      {estimate && estimate.gpus.length > 0 ? (
        <>
          <PoolBars pools={poolsOf(estimate)} time={budget.time} />
          <span className="w-px shrink-0 bg-line max-lg:hidden" />
          <StepSplit
            time={budget.time}
            before={isPromise(budget) ? "own" : null}
            unfit={unfitOf(budget)}
          />
          <span className="w-px shrink-0 bg-line" />
          <BudgetCell budget={budget} />
        </>
      ) : (
        <p className="self-center text-muted text-sm">
          {status === "offline"
            ? "No estimate: the server is not responding."
            : "Memory and time are estimated once the loop is valid."}
        </p>
      )}
    </section>
  );
}

function MachineNote({ budget: { estimate, isOfBefore } }: { budget: Budget }) {
  const first = estimate?.gpus[0];
  const isOnCpu = useDocument((state) => isLoopOnCpu(state.document));
  if (isOfBefore) return <OfBefore />;
  if (!estimate || !first) return null;
  return (
    <span className="tabular text-muted text-xs">
      {isOnCpu
        ? formatPlural(estimate.gpus.length, "process", "processes")
        : `${formatBytes(first.capacity_bytes)} each`}
    </span>
  );
}

function BudgetCell({ budget }: { budget: Budget }) {
  const open = useHardwareView((state) => state.open);
  const isReadonly = useDocument((state) => state.isReadonly);
  const isOnCpu = useDocument((state) => isLoopOnCpu(state.document));
  const gpu = budget.estimate?.gpus[0];
  const isOver = budget.estimate?.gpus.some((one) => one.fits === false) ?? false;
  const spare = Math.min(...(budget.estimate?.gpus ?? []).flatMap((one) => spareOf(one) ?? []));
  if (!gpu) return null;
  const inForce =
    budget.estimate === budget.answer?.after ? budget.answer.budget_fraction : budget.own;
  return (
    <div className="flex w-56 shrink-0 flex-col justify-between max-lg:w-48">
      <BudgetSlider
        share={budget.share}
        own={budget.own}
        whole={gpu.usable_bytes / inForce}
        place={isOnCpu ? "process" : "GPU"}
        isReadonly={isReadonly}
        onMove={budget.move}
        onBack={budget.back}
        onApply={budget.apply}
      />
      <div className="flex h-6 items-center gap-2 text-xs">
        {budget.isTrying ? (
          <TrialButtons budget={budget} />
        ) : isOver ? (
          <FitButton budget={budget} />
        ) : (
          <span className="tabular truncate text-muted" title={budget.refusal ?? undefined}>
            {Number.isFinite(spare) ? `spare ${formatBytes(Math.max(spare, 0))}` : "not known"}
            {budget.refusal === null ? null : <span className="text-warning">, not runnable</span>}
          </span>
        )}
        <span className="flex-1" />
        <button
          type="button"
          className="whitespace-nowrap font-semibold text-accent-text hover:underline"
          onClick={open}
        >
          {budget.isTrying ? "See changes" : "Open hardware"}
        </button>
      </div>
    </div>
  );
}

function TrialButtons({ budget }: { budget: Budget }) {
  const why = budget.isSettled
    ? budget.answer?.fits
      ? undefined
      : "No allowed change makes it fit: open the hardware to see what would"
    : "Still looking for settings";
  return (
    <>
      <Button
        size="small"
        look="primary"
        className="h-6"
        aria-disabled={why !== undefined}
        title={why}
        onClick={() => why === undefined && budget.apply()}
      >
        Apply
      </Button>
      <Button size="small" look="quiet" className="h-6 px-1" onClick={budget.back}>
        Back
      </Button>
    </>
  );
}

/** Settings that fit, at once; where there are none, the hardware opens and says what would help. */
function FitButton({ budget }: { budget: Budget }) {
  const open = useHardwareView((state) => state.open);
  const [isLooking, setLooking] = useState(false);
  const find = async () => {
    setLooking(true);
    const fits = await budget.makeItFit();
    setLooking(false);
    if (!fits) open();
  };
  return (
    <Button
      size="small"
      look="danger"
      className="h-6"
      icon={<Wrench size={12} />}
      aria-disabled={isLooking}
      onClick={() => {
        if (!isLooking) void find();
      }}
    >
      Make it fit
    </Button>
  );
}
