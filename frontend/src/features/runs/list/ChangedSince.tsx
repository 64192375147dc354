import type { RunSummary } from "@/api/types";
import { Popover } from "@/ui/Popover";
import { ChangeList, useLoopChanges } from "../start/ForkChanges";

interface ChangedSinceProps {
  run: Pick<RunSummary, "id" | "name" | "loop_id">;
  label: string;
}

export function ChangedSince({ run, label }: ChangedSinceProps) {
  return (
    <Popover
      label={`Changed since ${run.name}`}
      className="flex max-h-[min(60vh,var(--radix-popover-content-available-height))] flex-col gap-2 overflow-y-auto"
      trigger={
        <button
          type="button"
          title="What was changed in the loop since this run"
          className="shrink-0 whitespace-nowrap rounded-full bg-warning-soft px-2 text-warning text-xs leading-5 hover:underline"
        >
          {label}
        </button>
      }
    >
      <p className="font-medium">From this run to the loop as it is now</p>
      <Changes run={run} />
    </Popover>
  );
}

function Changes({ run }: Pick<ChangedSinceProps, "run">) {
  return (
    <ChangeList
      label="What was changed"
      none="The saved loop has no change that affects a run."
      failed="The loop could not be compared"
      query={useLoopChanges(run.id, run.loop_id)}
    />
  );
}
