import { TriangleAlert } from "lucide-react";
import { useState } from "react";
import type { Estimate, GpuEstimate } from "@/api/types";
import { partColor } from "@/lib/colors";
import {
  bytesIn,
  type GpuGroup,
  groupGpus,
  groupName,
  overOf,
  partNames,
  stagesOf,
} from "@/lib/estimate";
import { formatBytes, formatName } from "@/lib/format";
import { useSync } from "@/state/document/context";
import { classes } from "@/ui/classes";
import { MemoryBar } from "@/ui/MemoryBar";
import { Empty, Loading } from "@/ui/States";
import { EstimateTable } from "./EstimateTable";

/** What the loop will cost: memory of each GPU at its worst moment, and the time of a step. */
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
  return <Costs estimate={estimate} />;
}

function Costs({ estimate }: { estimate: Estimate }) {
  const names = partNames(estimate);
  const groups = groupGpus(estimate);
  return (
    <div className="flex h-full min-h-0 flex-col gap-4 overflow-y-auto p-4 lg:flex-row lg:overflow-hidden">
      <section
        aria-label="Memory"
        tabIndex={0}
        className="flex min-w-0 flex-1 flex-col gap-3 lg:overflow-y-auto"
      >
        {groups.map((group) => (
          <GpuRow key={group.key} group={group} />
        ))}
        <ul className="flex flex-wrap gap-x-4 gap-y-1">
          {names.map((part) => (
            <li key={part} className="flex items-center gap-1.5 text-muted text-xs">
              <span className="size-2.5 rounded-[2px]" style={{ background: partColor(part) }} />
              {formatName(part)}
            </li>
          ))}
        </ul>
      </section>
      <section
        aria-label="Time"
        tabIndex={0}
        className="min-w-0 lg:w-[400px] lg:shrink-0 lg:overflow-y-auto"
      >
        <EstimateTable estimate={estimate} />
      </section>
    </div>
  );
}

/** Why a GPU does not fit of which the shown moment is within its memory. */
function unfitText(gpu: GpuEstimate, shown: string): string {
  return overOf(gpu) > 0 && shown !== gpu.peak_stage
    ? `over in ${gpu.peak_stage}`
    : "no room for one sequence of full length";
}

function GpuRow({ group }: { group: GpuGroup }) {
  const { gpu } = group;
  const [chosen, setChosen] = useState<string | null>(null);
  const stages = stagesOf(gpu);
  // A stage that was chosen may be gone after a change of the loop.
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
      <MemoryBar gpu={gpu} stage={shown} height={20} />
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
