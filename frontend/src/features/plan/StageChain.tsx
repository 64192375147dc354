import { ChevronRight } from "lucide-react";
import type { PlannedStage } from "@/api/types";
import { useNodeColor } from "@/state/document/context";
import { showField } from "@/state/selection";
import { Tooltip } from "@/ui/Tooltip";

export function StageChain({ stages }: { stages: readonly PlannedStage[] }) {
  if (stages.length === 0) return null;
  return (
    <ol className="mt-2 flex flex-wrap items-center gap-y-1.5">
      {stages.map((stage, index) => (
        <li key={stage.stage} className="flex min-w-0 items-center">
          <StageChip stage={stage} />
          {index < stages.length - 1 ? (
            <ChevronRight size={14} className="shrink-0 text-faint" aria-hidden="true" />
          ) : null}
        </li>
      ))}
    </ol>
  );
}

function StageChip({ stage }: { stage: PlannedStage }) {
  const color = useNodeColor(stage.node);
  return (
    <Tooltip text={rowsText(stage)}>
      <button
        type="button"
        className="flex h-6 min-w-0 items-center gap-1.5 rounded-1 border border-line bg-sunken px-2 text-xs hover:bg-hover"
        onClick={() => {
          showField(stage.node, null);
        }}
      >
        <span
          className="size-2 shrink-0 rounded-full"
          style={{ background: color }}
          aria-hidden="true"
        />
        <span className="truncate">{stage.stage}</span>
        {stage.rows === null ? null : (
          <span className="tabular whitespace-nowrap font-medium">
            {stage.rows}
            {stage.passes > 1 ? " a pass" : ""}
          </span>
        )}
      </button>
    </Tooltip>
  );
}

export function rowsText(stage: PlannedStage): string {
  if (stage.rows === null) return `${stage.stage} works on no rows`;
  const breakdown = stage.breakdown ? `: ${stage.breakdown}` : "";
  const passes = stage.passes > 1 ? `; at most ${stage.passes} passes a step` : "";
  return `${stage.rows} rows a step${breakdown}${passes}`;
}
