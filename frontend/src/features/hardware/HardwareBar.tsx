import { Wrench } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { PredictedTime } from "@/api/types";
import { isOnCpu } from "@/document/pools";
import { FormulaLayer } from "@/features/hardware/formulas/FormulaLayer";
import { spareOf, worstOf } from "@/lib/estimate";
import { formatBytes, formatPlural } from "@/lib/format";
import { showHardware, useHardwareView } from "@/state/dialogs";
import { useDocument, useSync } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { MemoryBar } from "@/ui/MemoryBar";
import { Loading } from "@/ui/States";
import { BudgetSlider } from "./BudgetSlider";
import { HardwarePicker } from "./HardwarePicker";
import { gpuRange, type Pool, poolsOf, rolesIn } from "./lanes";
import { OfBefore, StepSplit, usePoolColor } from "./StepSplit";
import {
  type Budget,
  isPromise,
  trialRefusal,
  unfitOf,
  useBudget,
  useResetTrial,
} from "./useBudget";

export function HardwareBar() {
  useResetTrial();
  const { isOpen, isDescribing } = useHardwareView();
  return (
    <>
      {isOpen ? null : <Bar />}
      <FormulaLayer />
      {isDescribing ? (
        <Suspense>
          <GpuDialog />
        </Suspense>
      ) : null}
    </>
  );
}

function Bar() {
  const budget = useBudget();
  const status = useSync((state) => state.checkStatus);
  const pools = budget.estimate ? poolsOf(budget.estimate) : [];
  return (
    <section
      aria-label="Hardware and memory"
      className="flex h-[78px] shrink-0 items-stretch gap-5 border-line border-t bg-surface px-3.5 py-2"
    >
      <div className="flex shrink-0 flex-col justify-between">
        <HardwarePicker />
        <MachineNote budget={budget} />
      </div>
      {pools.length > 0 ? (
        <>
          <div className="flex min-w-0 flex-[3_1_0] gap-4">
            {pools.slice(0, SHOWN_POOLS).map((pool) => (
              <PoolCell
                key={pool.name}
                pool={pool}
                time={budget.time}
                isOnly={pools.length === 1}
              />
            ))}
            {pools.length > SHOWN_POOLS ? (
              <span className="self-center whitespace-nowrap text-muted text-xs">
                and {pools.length - SHOWN_POOLS} more
              </span>
            ) : null}
          </div>
          <span className="w-px shrink-0 bg-line max-lg:hidden" />
          <StepSplit time={budget.time} isPromise={isPromise(budget)} unfit={unfitOf(budget)} />
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
  const onCpu = useDocument((state) => isOnCpu(state.document));
  if (isOfBefore) return <OfBefore />;
  if (!estimate || !first) return null;
  return (
    <span className="tabular text-muted text-xs">
      {onCpu
        ? formatPlural(estimate.gpus.length, "process", "processes")
        : `${formatBytes(first.capacity_bytes)} each`}
    </span>
  );
}

function BudgetCell({ budget }: { budget: Budget }) {
  const gpus = budget.estimate?.gpus ?? [];
  const isOver = gpus.some((one) => one.fits === false);
  const spare = Math.min(...gpus.flatMap((one) => spareOf(one) ?? []));
  if (gpus.length === 0) return null;
  return (
    <div className="flex w-56 shrink-0 flex-col justify-between max-lg:w-48">
      <BudgetSlider budget={budget} />
      <div className="flex h-6 items-center gap-2 text-xs">
        {budget.isTrying ? (
          <TrialButtons budget={budget} />
        ) : isOver ? (
          <FitButton budget={budget} />
        ) : (
          <span className="tabular truncate text-muted" title={budget.refusal ?? undefined}>
            {Number.isFinite(spare) ? `${formatBytes(Math.max(spare, 0))} free` : "not known"}
            {budget.refusal === null ? null : <span className="text-warning">, not runnable</span>}
          </span>
        )}
        <span className="flex-1" />
        <button
          type="button"
          className="whitespace-nowrap font-semibold text-accent-text hover:underline"
          onClick={() => showHardware(true)}
        >
          {budget.isTrying ? "See changes" : "Open hardware"}
        </button>
      </div>
    </div>
  );
}

function TrialButtons({ budget }: { budget: Budget }) {
  return (
    <>
      <Button
        size="small"
        look="primary"
        className="h-6"
        refusal={trialRefusal(budget, "open the hardware to see what would")}
        onClick={budget.apply}
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
  const [isLooking, setLooking] = useState(false);
  const find = async () => {
    if (isLooking) return;
    setLooking(true);
    const fits = await budget.makeItFit();
    setLooking(false);
    if (!fits) showHardware(true);
  };
  return (
    <Button
      size="small"
      look="danger"
      className="h-6"
      icon={<Wrench size={12} />}
      aria-disabled={isLooking}
      onClick={() => void find()}
    >
      Make it fit
    </Button>
  );
}

const DRAWN = 8;
const SHOWN_POOLS = 3;

interface PoolCellProps {
  pool: Pool;
  time: PredictedTime | null;
  isOnly: boolean;
}

function PoolCell({ pool, time, isOnly }: PoolCellProps) {
  const color = usePoolColor();
  const range = useDocument((state) => gpuRange(pool, isOnCpu(state.document)));
  const fullest = worstOf(pool.gpus);
  if (!fullest) return null;
  const drawn = pool.gpus.length > DRAWN ? [fullest] : pool.gpus;
  const nodes = rolesIn(pool.name, time, pool.gpus).map((role) => role.node);
  return (
    <button
      type="button"
      className="flex min-w-0 flex-1 flex-col justify-between rounded-2 text-left hover:bg-hover"
      onClick={() => showHardware(true)}
    >
      <span className="flex w-full gap-1">
        {drawn.map((gpu) => (
          <span key={gpu.index} className="block min-w-4 flex-1">
            <MemoryBar gpu={gpu} stage={gpu.peak_stage} height={26} />
          </span>
        ))}
      </span>
      <span className="flex w-full min-w-0 items-center gap-1.5 text-xs">
        <span
          className="size-2.5 shrink-0 rounded-[3px]"
          style={{ background: color(nodes) }}
          aria-hidden="true"
        />
        <b className="truncate">{isOnly ? range : pool.name}</b>
        <span
          className={`tabular truncate ${fullest.fits === false ? "font-medium text-error" : "text-muted"}`}
        >
          {formatBytes(fullest.peak_bytes)} of {formatBytes(fullest.usable_bytes)}
          {fullest.peak_stage ? ` in ${fullest.peak_stage}` : ""}
        </span>
      </span>
    </button>
  );
}

const GpuDialog = lazy(() =>
  import("./GpuDialog").then((module) => ({ default: module.GpuDialog })),
);

const HardwareView = lazy(() =>
  import("./HardwareView").then((module) => ({ default: module.HardwareView })),
);

export function HardwareLayer() {
  const isOpen = useHardwareView((state) => state.isOpen);
  if (!isOpen) return null;
  return (
    <div className="absolute inset-0 z-35 bg-surface">
      <Suspense fallback={<Loading label="Hardware" />}>
        <HardwareView />
      </Suspense>
    </div>
  );
}
