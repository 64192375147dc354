import { Flame, TriangleAlert } from "lucide-react";
import { useState } from "react";
import type { Estimate, GpuEstimate, PredictedTime } from "@/api/types";
import { behind, partBehind, rove } from "@/features/hardware/formulas/formula";
import {
  bytesIn,
  type GpuGroup,
  groupGpus,
  groupName,
  overOf,
  stagesOf,
  unknownText,
} from "@/lib/estimate";
import { formatBytes, formatCount, formatRate, formatSeconds } from "@/lib/format";
import { useSync } from "@/state/document/context";
import { classes } from "@/ui/classes";
import { MemoryBar, MemoryLegend } from "@/ui/MemoryBar";
import { Empty, Loading } from "@/ui/States";
import { CorrectionMark, StepNumber, WholeRun } from "./TimeNumbers";

export function MemoryPanel() {
  const check = useSync((state) => state.check);
  if (!check) return <Loading label="Estimating" />;
  const { estimate } = check;
  if (!estimate) {
    return (
      <Empty title="No estimate yet">
        Memory and time are estimated once the loop has no structural errors.
      </Empty>
    );
  }
  return (
    <div className="flex h-full min-h-0 flex-col gap-4 overflow-y-auto p-4 lg:flex-row lg:overflow-hidden">
      <section
        aria-label="Memory"
        tabIndex={0}
        className="flex min-w-0 flex-1 flex-col gap-3 lg:overflow-y-auto"
      >
        {groupGpus(estimate).map((group) => (
          <GpuRow key={group.key} group={group} />
        ))}
        <MemoryLegend estimate={estimate} className="gap-x-4 gap-y-1" />
      </section>
      <section
        aria-label="Time"
        tabIndex={0}
        className="min-w-0 lg:w-[400px] lg:shrink-0 lg:overflow-y-auto"
      >
        <EstimateTable estimate={estimate} time={check.time ?? null} />
      </section>
    </div>
  );
}

function unfitText(gpu: GpuEstimate, shown: string): string {
  return overOf(gpu) > 0 && shown !== gpu.peak_stage
    ? `over in ${gpu.peak_stage}`
    : "no room for one sequence of full length";
}

function GpuRow({ group }: { group: GpuGroup }) {
  const { gpu } = group;
  const [chosen, setChosen] = useState<string | null>(null);
  const stages = stagesOf(gpu);
  const shown = chosen !== null && stages.includes(chosen) ? chosen : gpu.peak_stage;
  const used = shown ? bytesIn(gpu, shown) : gpu.peak_bytes;
  const over = overOf(gpu, shown || null);
  return (
    <div>
      <div className="mb-1 flex items-baseline gap-2 text-xs">
        <b className="whitespace-nowrap">{groupName(group)}</b>
        <span className="truncate text-muted">
          {shown ? `${shown === gpu.peak_stage ? "worst in" : "in"} ${shown}` : "nothing runs here"}
        </span>
        <span className="flex-1" />
        {over > 0 || gpu.fits === false ? (
          <span className="flex items-center gap-1 whitespace-nowrap font-medium text-error">
            <TriangleAlert size={13} />
            {over > 0 ? `over by ${formatBytes(over)}` : unfitText(gpu, shown)}
          </span>
        ) : null}
        <span className="tabular whitespace-nowrap">
          {gpu.peak_bytes === null ? "not known" : formatBytes(used)}{" "}
          <span className="text-muted">of {formatBytes(gpu.usable_bytes)} usable</span>
        </span>
      </div>
      <MemoryBar
        gpu={gpu}
        stage={shown}
        height={20}
        isInTabOrder
        asButton={partBehind(gpu.pool, false)}
        onKeyDown={rove}
      />
      <div className="mt-1 flex flex-wrap gap-1">
        {stages.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === shown}
            className={classes(
              "rounded-full px-2 text-2xs",
              name === shown ? "bg-accent-soft text-accent-text" : "text-muted hover:bg-hover",
            )}
            onClick={() => setChosen(name)}
          >
            {name}
          </button>
        ))}
      </div>
    </div>
  );
}

interface EstimateTableProps {
  estimate: Estimate;
  time?: PredictedTime | null;
}

export function EstimateTable({ estimate, time = null }: EstimateTableProps) {
  const { parameters, rollout } = estimate;
  const counts = [
    ...Object.entries(parameters).map(([node, count]) => [`${node}, parameters`, count] as const),
    ...Object.entries(rollout ?? {}).map(
      ([node, { max_concurrent_sequences: count }]) =>
        [`${node}, sequences at once`, count] as const,
    ),
  ];
  const slowest = Math.max(...estimate.stages.map((stage) => stage.seconds ?? 0), 0);
  return (
    <>
      <p className="mb-2 text-sm">
        {estimate.step_seconds === null ? (
          "The step time is not known"
        ) : (
          <>
            A step takes about{" "}
            <StepNumber time={time} seconds={estimate.step_seconds} isTried={false} />
          </>
        )}
        {estimate.bottleneck ? (
          <>
            ; most of it goes to <b>{estimate.bottleneck}</b>
          </>
        ) : null}
        .<WholeRun time={time} isTried={false} />
      </p>
      {estimate.unknown.length > 0 ? (
        <p className="mb-2 whitespace-pre-line text-sm text-warning">
          Not known: {unknownText(estimate)}
        </p>
      ) : null}
      <table className="w-full text-xs">
        <thead className="text-left text-muted">
          <tr>
            <th className="pb-1 font-medium">Stage</th>
            <th className="pb-1 text-right font-medium">Time</th>
            <th className="pb-1 text-right font-medium">Tokens</th>
            <th className="pb-1 pl-3 font-medium">Bound by</th>
          </tr>
        </thead>
        <tbody>
          {estimate.stages.map((stage, index) => (
            <tr key={`${stage.stage} ${index}`} className="border-line border-t">
              <td className="relative max-w-40 truncate py-1 pr-2">
                <span
                  className="absolute inset-y-0.5 left-0 -z-0 rounded-1 bg-accent-soft"
                  style={{ width: `${slowest > 0 ? ((stage.seconds ?? 0) / slowest) * 100 : 0}%` }}
                />
                <span className="relative flex items-center gap-1 px-1">
                  <span className="truncate" title={stage.stage}>
                    {stage.stage}
                  </span>
                  {stage.stage === estimate.bottleneck ? (
                    <Flame
                      size={12}
                      className="shrink-0 text-warning"
                      role="img"
                      aria-label="bottleneck"
                    />
                  ) : null}
                </span>
              </td>
              <td className="tabular whitespace-nowrap text-right">
                {stage.seconds === null ? (
                  formatSeconds(null)
                ) : (
                  <button
                    className="rounded-1 underline decoration-dotted decoration-faint underline-offset-2"
                    {...behind({ of: "stage", stage: stage.stage, phase: null }, stage.stage)}
                  >
                    {formatSeconds(stage.seconds)}
                  </button>
                )}
                <CorrectionMark stage={stage.stage} time={time} isTried={false} />
              </td>
              <td className="tabular text-right">
                {stage.tokens_per_second ? formatRate(stage.tokens_per_second, "tok") : ""}
              </td>
              <td className="pl-3 text-muted">{stage.bound ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <dl className="mt-3 grid grid-cols-[1fr_auto] gap-x-4 gap-y-1 text-xs">
        {counts.map(([name, count]) => (
          <div key={name} className="contents">
            <dt className="truncate text-muted">{name}</dt>
            <dd className="tabular text-right">{formatCount(count)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
